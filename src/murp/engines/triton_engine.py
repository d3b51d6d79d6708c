"""The Triton engine: MuRP, MuRE and their ablations on CUDA, two kernels a step.

*gradient* (:mod:`murp.engines.triton_gradient`): a program for each positive triple draws its false objects, scores
all candidates in tiles and writes, for each, the coefficients of its gradient, which is a combination of few vectors,

    ∂L/∂v = a·x + b·r + w·v,        x the moved subject, r the translation, v the candidate itself

(and M²∘v where a matrix M stretches objects). It also links every occurrence of an entity to the one before (an
atomic exchange at ``head``), so that no gradient table is needed. *update* (:mod:`murp.engines.triton_update`): a
program for some occurrences; the occurrence that stands at the head of its entity's chain sums the chain, moves the
row and clears the head. Relations, few and hot, are summed by atomic additions and moved by whoever claims them
first. The cost does not depend on the number of entities.

The second axis of the grid numbers independent runs of the same shape, which train side by side; the tables have
that axis first. What a model is made of is decided when the kernels are compiled.

The entities' points may lie in host memory (``--tables host``): the kernels then read and write them over the bus, each
row once there and once back.

Many steps are replayed from one CUDA graph, so that Python is never on the path. Several models of one
shape can train side by side: a step of sixteen costs about four times a step of one.

The same seed draws the same triples and negatives. Sums by atomic addition (the relations' gradients, the loss)
and the order of an entity's occurrences follow the order in which the hardware got there: runs agree up to
rounding, not bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import torch
import triton
from torch import Tensor
from triton.runtime.driver import driver

from murp.engines.capture import collector_at_rest
from murp.engines.engine import Chunk
from murp.engines.triton_gradient import gradient_kernel
from murp.engines.triton_math import draw_kernel
from murp.engines.triton_update import update_kernel
from murp.geometry.poincare import limit_radius, set_back_radius
from murp.models import MultiRelational

# A chunk is replayed as so many steps of each of these graphs as fit.
GRAPH_STEPS = (256, 32, 4, 1)
# What the kernels are passed, in their order; a table that a model lacks is empty, and never read.
RELATION_TABLES = ("subject_stretch", "object_stretch", "translation")
TABLES = ("entity", *RELATION_TABLES, "subject_bias", "object_bias")


def parts(model: MultiRelational) -> dict[str, bool]:
    """What the kernels are compiled for: the relation's transformation and the bias."""
    flags = {name.upper(): used for name, used in asdict(model.parts).items()}
    flags |= {"SUBJECT_BIAS": model.bias in ("both", "head"), "OBJECT_BIAS": model.bias in ("both", "tail")}
    return flags | {"NORMS": model.bias == "norm", "MOVED_NORMS": model.bias == "transformed-norm"}


class TritonEngine:
    """Steps of any MuRP or MuRE, for one model or for several of the same parts and shape at once."""

    name = "triton"

    def __init__(self, models: Sequence[MultiRelational]) -> None:
        self.models = list(models)
        first = self.models[0]
        self.device, self.dtype, self.dim = first.device, first.dtype, first.dim
        self.host = first.on_host  # whether the kernels reach the entities' points over the bus
        self.tables: dict[str, Tensor] = {}
        for name in first.parameters:
            if len(self.models) == 1:
                self.tables[name] = first.parameters[name][None]
            else:
                self.tables[name] = torch.stack([model.parameters[name] for model in self.models])
                for model, values in zip(self.models, self.tables[name], strict=True):
                    model.parameters[name] = values
        for name in TABLES:
            self.tables.setdefault(name, torch.zeros(0, dtype=self.dtype, device=self.device))
        runs = len(self.models)
        self.rates = torch.zeros(runs, dtype=self.dtype, device=self.device)
        self.seeds = torch.zeros(runs, dtype=torch.int64, device=self.device)
        self.loss = torch.zeros(runs, dtype=torch.float64, device=self.device)
        # The step within the chunk, and the steps ever done: a relation is claimed by stamping the latter.
        self.clock = torch.zeros(2, dtype=torch.int64, device=self.device)
        self.head = torch.full((runs, first.num_entities), -1, dtype=torch.int32, device=self.device)
        self.claim = torch.full((runs, first.num_relations), -1, dtype=torch.int32, device=self.device)
        self.relation_gradients = [torch.zeros_like(self.tables[n]) for n in RELATION_TABLES]
        self.batches: dict[tuple[int, int], Batch] = {}

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """SGD remembers nothing."""
        return [{} for _ in range(len(self.models))]

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`."""
        shape = (chunks[0].positives.shape[1], chunks[0].negatives)
        if shape not in self.batches:
            self.batches[shape] = Batch(self, *shape)
        batch = self.batches[shape]
        _send(rates, self.rates)
        total = torch.zeros_like(self.loss)
        for start in range(0, chunks[0].steps, batch.capacity):
            steps = min(batch.capacity, chunks[0].steps - start)
            for i, chunk in enumerate(chunks):
                batch.positives[i, :steps] = chunk.positives[start : start + steps]
            # Part of a chunk that is larger than the buffer has a seed of its own.
            _send([(chunk.seed + start) % 2**62 for chunk in chunks], self.seeds)
            self.clock[:1].zero_()  # assigning a number would wait for the GPU
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
        draw_kernel[(triton.cdiv(total, 256), 1)](drawn, seeds, chunk.num_entities, total, TILE=256)
        return drawn.view(steps, size, -1)[:, :, 1:]


def _send(values: Sequence[float], target: Tensor) -> None:
    """Write numbers to a GPU behind the steps that may still be running there, without waiting for those."""
    target.copy_(torch.tensor(values, dtype=target.dtype, pin_memory=target.is_cuda), non_blocking=True)


class Batch:
    """Buffers and captured graphs for one batch size and number of negatives."""

    def __init__(self, engine: TritonEngine, size: int, negatives: int) -> None:
        self.engine, self.size = engine, size
        runs, candidates = len(engine.models), 1 + negatives
        # Positions within a chunk are 32-bit numbers.
        self.capacity = max(1, min(2048, 2**31 // (size * candidates) - 1))
        first = engine.models[0]
        self.positives = torch.zeros(runs, self.capacity, size, 3, dtype=torch.int64, device=engine.device)
        self.space = [*space(first, size, candidates, runs, host=engine.host), engine.head]
        self.gradient_options, self.update_options = options(first, candidates, runs, host=engine.host)
        self.update_programs = triton.cdiv(size * (candidates + 1), self.update_options["OT"]) + size
        self.graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def launch(self, offset: int) -> None:
        """One step: the gradient kernel, then the update kernel."""
        self.launch_gradient(offset)
        self.launch_update(offset)

    def launch_gradient(self, offset: int) -> None:
        """Gradients of the step ``offset`` steps from where the clock stands."""
        engine = self.engine
        gradient_kernel[(self.size, len(engine.models))](
            *self.shared(offset), engine.seeds, engine.seeds, *self.tables(), *self.space, *engine.relation_gradients,
            engine.loss, *self.sizes(), **self.gradient_options,
        )  # fmt: skip

    def launch_update(self, offset: int) -> None:
        """Move the rows that the gradient kernel has touched."""
        engine = self.engine
        update_kernel[(self.update_programs, len(engine.models))](
            *self.shared(offset), engine.rates, *self.tables(), *self.space, *engine.relation_gradients, engine.claim,
            *self.sizes(), **self.update_options,
        )  # fmt: skip

    def shared(self, offset: int) -> tuple[Any, ...]:
        """What both kernels are passed first."""
        return self.positives, self.engine.clock, offset, self.capacity

    def tables(self) -> list[Tensor]:
        """The model's tables as both kernels are passed them."""
        return [self.engine.tables[name] for name in TABLES]

    def sizes(self) -> tuple[int, ...]:
        """What both kernels are passed last."""
        model = self.engine.models[0]
        return model.num_entities, model.num_relations, self.size, len(self.engine.models)

    def run(self, steps: int) -> None:
        """The first ``steps`` steps of the buffer."""
        if self.engine.device.type != "cuda":  # Triton's interpreter: slow, for tests
            for _ in range(steps):
                self.launch(0)
                self.engine.clock += 1
            return
        if missing := [length for length in GRAPH_STEPS if steps >= length and length not in self.graphs]:
            if not self.graphs:
                self.compile()
            with collector_at_rest():
                self.graphs |= {length: self.capture(length) for length in missing}
        for length in GRAPH_STEPS:
            for _ in range(steps // length):
                self.graphs[length].replay()
            steps %= length

    def capture(self, steps: int) -> torch.cuda.CUDAGraph:
        """``steps`` steps as one graph, which also moves the clock."""
        engine = self.engine
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for offset in range(steps):
                self.launch(offset)
            engine.clock += steps
        return graph

    def compile(self) -> None:
        """Compile both kernels by a step with learning rate 0, which moves nothing, and forget its loss and claims."""
        engine = self.engine
        rates = engine.rates.clone()
        engine.rates.zero_()
        self.launch(0)
        engine.rates.copy_(rates)
        engine.loss.zero_()
        engine.claim.fill_(-1)


def space(model: MultiRelational, size: int, candidates: int, runs: int = 1, *, host: bool = False) -> list[Tensor]:
    """What the gradient kernel writes for the update kernel, for ``size`` positives.

    Moved subjects, then subjects' gradients, then rows that were read from host memory; translations; squares of what
    stretches objects; coefficients of x, r, the candidate itself, its square and φ; which row an occurrence is of, and
    the occurrence before.
    """
    occurrences = size * (candidates + 1)

    def zeros(*shape: int, dtype: torch.dtype = model.dtype) -> Tensor:
        return torch.zeros(runs, *shape, dtype=dtype, device=model.device)

    rows = [zeros(length, model.dim) for length in (2 * size + (occurrences if host else 0), size, size)]
    scalars = [zeros(occurrences) for _ in range(5)]
    return [*rows, *scalars, zeros(occurrences, dtype=torch.int64), zeros(occurrences, dtype=torch.int32)]


def options(
    model: MultiRelational, candidates: int, runs: int = 1, *, host: bool = False, slices: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the two kernels are compiled for. ``slices``: negatives are given, and rows replaced by their gradients."""
    space = model.geometry
    shape: dict[str, Any] = {"K": candidates, "D": model.dim, "BALL": not space.is_flat}
    shape |= {"C": 1.0 if space.is_flat else space.c, "SET_BACK_GAP": 1 - set_back_radius(model.dtype)}
    shape |= {"LIMIT_GAP": 1 - limit_radius(model.dtype), **parts(model), "HOST": host}
    gradient, update = tuning(model.dim, candidates, runs, half=model.point_dtype != model.dtype)
    if runs > 1 and gradient["J"] > 1:
        # Some warps share the parts of a row: up to three sums over the parts go through shared memory.
        most = shared_memory(model.device) // (3 * model.dtype.itemsize * triton.next_power_of_2(model.dim))
        gradient["KT"] = max(1, min(gradient["KT"], 2 ** (most.bit_length() - 1)))
    return {**shape, **gradient, "GIVEN": slices}, {**shape, **update, "KEEP": slices}


def shared_memory(device: torch.device) -> int:
    """Bytes that the threads of a program may share; in Triton's interpreter, on the CPU, there is no limit."""
    if device.type == "cpu":
        return 2**31
    found: int = driver.active.utils.get_device_properties(device.index or 0)["max_shared_mem"]
    return found


def tuning(dim: int, candidates: int, runs: int, *, half: bool = False) -> tuple[dict[str, int], dict[str, int]]:
    """Tiles, parts of a row, warps and registers of the two kernels, as measured best on an H200.

    One run is a chain of waits, so a program should be done soon. Several runs are many programs: what counts is how
    many instructions they take, and how many of them fit on a multiprocessor. ``half``: points of half precision. With
    them an update by two warps takes 13 µs, by one warp 4; of three runs 21 and 5.
    """
    wide = triton.next_power_of_2(dim)
    gradient = {"KT": max(1, min(triton.next_power_of_2(candidates), 16384 // wide))}
    narrow, many = wide <= 64, runs > 1
    if narrow and not many:
        gradient |= {**_columns(wide, 32), "num_warps": 4}
        update = {**_columns(wide, 32), "OT": min(64, 512 // wide), "num_warps": 1 if half else 2}
    elif narrow:
        gradient |= {**_columns(wide, 32), "num_warps": 2, "maxnreg": 128}
        update = {**_columns(wide, 16), "OT": min(32, 1024 // wide), "num_warps": 2, "maxnreg": 80}
        update |= {"num_warps": 1, "maxnreg": 128} if half else {}
    else:
        gradient |= {**_columns(wide, wide // 2), "num_warps": 4} if many else {**_columns(wide, wide), "num_warps": 8}
        update = {**_columns(wide, wide // 2), "OT": max(1, 256 // wide), "num_warps": 1}
    return gradient, update


def _columns(wide: int, most: int) -> dict[str, int]:
    """A row of ``wide`` columns in parts of at most ``most``; see :func:`murp.engines.triton_math.columns`."""
    return {"J": max(1, wide // most), "W": min(wide, most)}


class TritonSideBySide:
    """Many models of one shape: half of them on a stream of its own, so that a gradient overlaps with an update."""

    name = "triton"

    def __init__(self, models: Sequence[MultiRelational]) -> None:
        half = (len(models) + 1) // 2
        self.halves = [TritonEngine(models[:half]), TritonEngine(models[half:])]
        self.streams = [torch.cuda.Stream(models[0].device) for _ in self.halves]  # type: ignore[no-untyped-call]

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """SGD remembers nothing."""
        return [state for half in self.halves for state in half.states]

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`."""
        here, sums, start = torch.cuda.current_stream(), [], 0
        for engine, stream in zip(self.halves, self.streams, strict=True):
            end = start + len(engine.models)
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                sums.append(engine.run(chunks[start:end], rates[start:end]))
            start = end
        for stream in self.streams:
            here.wait_stream(stream)
        return torch.cat(sums)
