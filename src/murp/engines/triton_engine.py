"""The Triton engine: MuRP and MuRE on CUDA, two kernels a step; see :mod:`murp.engines.triton_kernels`.

Many steps are replayed from one CUDA graph, so that Python is never on the path. Several models of one
shape can train side by side: a step of sixteen costs little more than a step of one.

The same seed draws the same triples and negatives. Sums by atomic addition (the relations' gradients, the loss)
and the order of an entity's occurrences follow the order in which the hardware got there: runs agree up to
rounding, not bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import triton
from torch import Tensor

from murp.engines import triton_kernels as kernels
from murp.engines.engine import Chunk
from murp.geometry import PoincareBall
from murp.geometry.poincare import limit_radius, set_back_radius
from murp.models import MultiRelational

# A chunk is replayed as so many steps of each of these graphs as fit.
GRAPH_STEPS = (256, 32, 4, 1)


class TritonEngine:
    """Steps of the published MuRP or MuRE, for one model or for several of one shape at once."""

    name = "triton"

    def __init__(self, models: Sequence[MultiRelational]) -> None:
        self.models = list(models)
        first = self.models[0]
        self.device, self.dtype, self.dim = first.device, first.dtype, first.dim
        self.tables: dict[str, Tensor] = {}
        for name in first.parameters:
            if len(self.models) == 1:
                self.tables[name] = first.parameters[name][None]
            else:
                self.tables[name] = torch.stack([model.parameters[name] for model in self.models])
                for model, values in zip(self.models, self.tables[name], strict=True):
                    model.parameters[name] = values
        runs = len(self.models)
        self.rates = torch.zeros(runs, dtype=self.dtype, device=self.device)
        self.seeds = torch.zeros(runs, dtype=torch.int64, device=self.device)
        self.loss = torch.zeros(runs, dtype=torch.float64, device=self.device)
        # The step within the chunk, and the steps ever done: a relation is claimed by stamping the latter.
        self.clock = torch.zeros(2, dtype=torch.int64, device=self.device)
        self.head = torch.full((runs, first.num_entities), -1, dtype=torch.int32, device=self.device)
        self.claim = torch.full((runs, first.num_relations), -1, dtype=torch.int32, device=self.device)
        self.relation_gradients = [torch.zeros_like(self.tables[n]) for n in ("subject_stretch", "translation")]
        self.batches: dict[tuple[int, int], Batch] = {}

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`."""
        shape = (chunks[0].positives.shape[1], chunks[0].negatives)
        if shape not in self.batches:
            self.batches[shape] = Batch(self, *shape)
        batch = self.batches[shape]
        self.rates.copy_(torch.tensor(rates, dtype=self.dtype))
        total = torch.zeros_like(self.loss)
        for start in range(0, chunks[0].steps, batch.capacity):
            steps = min(batch.capacity, chunks[0].steps - start)
            for i, chunk in enumerate(chunks):
                batch.positives[i, :steps] = chunk.positives[start : start + steps]
            # Part of a chunk that is larger than the buffer has a seed of its own.
            self.seeds.copy_(torch.tensor([(chunk.seed + start) % 2**62 for chunk in chunks]))
            self.clock[0] = 0
            self.loss.zero_()
            batch.run(steps)
            total += self.loss
        return total

    def negatives(self, chunk: Chunk) -> Tensor:
        """The false objects (S, B, k) that :meth:`run` draws for a chunk that fits its buffer."""
        steps, size = chunk.positives.shape[:2]
        total = steps * size * (1 + chunk.negatives)
        drawn = torch.zeros(total, dtype=torch.int64, device=self.device)
        seeds = torch.tensor([chunk.seed % 2**62], device=self.device)
        kernels.draw_kernel[(triton.cdiv(total, 256), 1)](drawn, seeds, chunk.num_entities, total, TILE=256)
        return drawn.view(steps, size, -1)[:, :, 1:]


class Batch:
    """Buffers and captured graphs for one batch size and number of negatives."""

    def __init__(self, engine: TritonEngine, size: int, negatives: int) -> None:
        self.engine, self.size = engine, size
        runs, dim, candidates = len(engine.models), engine.dim, 1 + negatives
        occurrences = size * (candidates + 1)
        # Positions within a chunk are 32-bit numbers.
        self.capacity = max(1, min(2048, 2**31 // (size * candidates) - 1))

        def zeros(*shape: int, dtype: torch.dtype = engine.dtype) -> Tensor:
            return torch.zeros(runs, *shape, dtype=dtype, device=engine.device)

        self.positives = zeros(self.capacity, size, 3, dtype=torch.int64)
        rows = [zeros(2 * size, dim), zeros(size, dim)]  # moved subjects and then subjects' gradients; translations
        scalars = [zeros(occurrences) for _ in ("of x", "of r", "of self", "of φ")]
        links = [zeros(occurrences, dtype=torch.int64), zeros(occurrences, dtype=torch.int32)]
        self.space = [*rows, *scalars, *links, engine.head]
        first = engine.models[0]
        ball = first.geometry if isinstance(first.geometry, PoincareBall) else None
        shape: dict[str, Any] = {"K": candidates, "D": dim, "DP": triton.next_power_of_2(dim), "BALL": ball is not None}
        shape |= {"C": ball.c if ball else 1.0, "SET_BACK_GAP": 1 - set_back_radius(engine.dtype)}
        wide = shape["DP"]
        tile = max(1, min(triton.next_power_of_2(candidates), 16384 // wide))
        rows_a_program = max(1, 512 // wide if wide <= 64 else 256 // wide)
        self.gradient_options = {**shape, "KT": tile, "num_warps": 4 if wide <= 64 else 8}
        self.update_options = {**shape, "OT": rows_a_program, "num_warps": 2 if wide <= 64 else 1}
        self.update_options["LIMIT_GAP"] = 1 - limit_radius(engine.dtype)
        if runs > 1 and wide <= 64:
            # Many programs: what counts is how many fit on a multiprocessor, not how soon one is done.
            self.gradient_options |= {"num_warps": 2, "maxnreg": 128}
            self.update_options |= {"maxnreg": 64}
        self.update_programs = triton.cdiv(occurrences, rows_a_program) + size
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def launch(self, offset: int) -> None:
        """One step: the gradient kernel, then the update kernel."""
        engine = self.engine
        names = ("entity", "subject_stretch", "translation", "subject_bias", "object_bias")
        tables = [engine.tables[name] for name in names]
        model = engine.models[0]
        runs = len(engine.models)
        sizes = (model.num_entities, model.num_relations, self.size, runs)
        shared = (self.positives, engine.clock, offset, self.capacity)
        kernels.gradient_kernel[(self.size, runs)](
            *shared, engine.seeds, *tables, *self.space, *engine.relation_gradients, engine.loss, *sizes,
            **self.gradient_options,
        )  # fmt: skip
        kernels.update_kernel[(self.update_programs, runs)](
            *shared, engine.rates, *tables, *self.space, *engine.relation_gradients, engine.claim, *sizes,
            **self.update_options,
        )  # fmt: skip

    def run(self, steps: int) -> None:
        """The first ``steps`` steps of the buffer."""
        if self.engine.device.type != "cuda":  # Triton's interpreter: slow, for tests
            for _ in range(steps):
                self.launch(0)
                self.engine.clock += 1
            return
        for length in GRAPH_STEPS:
            if steps >= length and length not in self.graphs:
                self.graphs[length] = self.capture(length)
            for _ in range(steps // length):
                self.graphs[length].replay()
            steps %= length

    def capture(self, steps: int) -> torch.cuda.CUDAGraph:
        """``steps`` steps as one graph, which also moves the clock."""
        engine = self.engine
        if not self.graphs:
            self.compile()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for offset in range(steps):
                self.launch(offset)
            engine.clock += steps
        return graph

    def compile(self) -> None:
        """Compile both kernels by a step that changes nothing: on copies of every tensor it writes."""
        engine = self.engine
        kept = [engine.tables, engine.head, engine.claim, engine.relation_gradients, engine.loss, self.space]
        engine.tables = {name: values.clone() for name, values in engine.tables.items()}
        engine.relation_gradients = [values.clone() for values in engine.relation_gradients]
        engine.claim, engine.loss = engine.claim.clone(), engine.loss.clone()
        self.space = [values.clone() for values in self.space]
        self.launch(0)
        torch.cuda.synchronize()
        engine.tables, engine.head, engine.claim, engine.relation_gradients, engine.loss, self.space = kept  # type: ignore[assignment]
