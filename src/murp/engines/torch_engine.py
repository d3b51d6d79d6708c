"""The PyTorch engine: every model and every choice of parts, on the CPU and on CUDA.

On the CPU the steps run one after another, on as many of PyTorch's threads as are quickest at the moment: beside busy
neighbours that is one. PyTorch cuts the rows of a batch among its threads, never a sum within one, so that the result
is the same. On CUDA one step is captured in a graph, with fixed
shapes, and replayed: a step is some hundred small kernels, and launching them from Python would
cost many times what they compute. A run long enough to earn it back is compiled as well, which makes
the hundred kernels a dozen or two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from murp import threads
from murp.engines.capture import collector_at_rest
from murp.engines.engine import Chunk
from murp.engines.step import RowUpdater, loss_of_rows, row_gradients
from murp.models.model import Model

Step = Callable[[Tensor, Tensor, "float | Tensor"], Tensor]

# Compiling takes about as long as so many steps: a run that has come that far may well go on as long again, and
# one that has not would lose by it.
COMPILE_AFTER = 50_000
PIECE = 4  # steps on the CPU between two looks at the clock


class TorchEngine:
    """Steps by autograd over the gathered rows; see :mod:`murp.engines.step`.

    On CUDA a step is replayed from a graph, and after ``compile_after`` steps of a full batch from a graph of
    compiled kernels.
    """

    name = "torch"

    def __init__(self, model: Model, compile_after: int = COMPILE_AFTER) -> None:
        self.model = model
        self.compile_after = compile_after
        self.updater = RowUpdater(model)
        self.graphs: dict[tuple[int, int], CapturedStep] = {}
        self.choice = threads.Choice()

    def step(self, positives: Tensor, negatives: Tensor, lr: float | Tensor) -> Tensor:
        """One step on positives (B, 3) and their negatives (B, k); the mean loss before it."""
        objects = torch.cat([positives[:, 2:], negatives], dim=1)
        loss, touched = row_gradients(self.model, positives[:, 0], positives[:, 1], objects)
        self.updater.update(touched, lr)
        return loss

    def compiled_step(self) -> Step:
        """:meth:`step` with its loss, its gradient and its update compiled for one shape."""
        loss_of = torch.compile(loss_of_rows, dynamic=False)
        update = torch.compile(self.updater.update, dynamic=False)

        def step(positives: Tensor, negatives: Tensor, lr: float | Tensor) -> Tensor:
            objects = torch.cat([positives[:, 2:], negatives], dim=1)
            loss, touched = row_gradients(self.model, positives[:, 0], positives[:, 1], objects, loss_of)
            update(touched, lr)
            return loss

        return step

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; this engine has one model."""
        (chunk,), (lr,) = chunks, rates
        return self.steps(chunk.positives, chunk.draw(), lr)[None]

    def steps(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """One step after another on positives (S, B, 3) and negatives (S, B, k); the sum of their mean losses."""
        if self.model.device.type == "cuda":
            shape = (positives.shape[1], negatives.shape[2])
            if shape not in self.graphs:
                self.graphs[shape] = CapturedStep(self.model, self.step, *shape)
            elif self.graphs[shape].steps >= self.compile_after and not self.graphs[shape].compiled:
                self.graphs[shape] = CapturedStep(self.model, self.compiled_step(), *shape, compiled=True)
            return self.graphs[shape].replay(positives, negatives, lr)
        total = torch.zeros((), dtype=self.model.dtype)
        before = torch.get_num_threads()
        try:
            for start in range(0, len(positives), PIECE):
                threads.use_torch(self.choice.next())
                began = time.perf_counter()
                some = slice(start, start + PIECE)
                for batch, false in zip(positives[some], negatives[some], strict=True):
                    total += self.step(batch, false, lr)
                self.choice.took((time.perf_counter() - began) / len(positives[some]))
        finally:
            threads.use_torch(before)
        return total


class CapturedStep:
    """One step for a fixed batch size and number of negatives as a CUDA graph."""

    def __init__(self, model: Model, step: Step, batch_size: int, negatives: int, compiled: bool = False) -> None:
        self.steps, self.compiled = 0, compiled
        device = model.device
        self.positives = torch.zeros(batch_size, 3, dtype=torch.int64, device=device)
        self.negatives = torch.zeros(batch_size, negatives, dtype=torch.int64, device=device)
        self.lr = torch.zeros((), dtype=model.dtype, device=device)
        self.total = torch.zeros((), dtype=model.dtype, device=device)
        # Capture needs a warm allocator and warm libraries; with a learning rate of 0 the warm-up moves nothing.
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step(self.positives, self.negatives, self.lr)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with collector_at_rest(), torch.cuda.graph(self.graph):
            self.total += step(self.positives, self.negatives, self.lr)

    def replay(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """Run the captured step on each batch in turn."""
        self.steps += len(positives)
        self.lr.fill_(lr)
        self.total.zero_()
        for batch, false in zip(positives, negatives, strict=True):
            self.positives.copy_(batch)
            self.negatives.copy_(false)
            self.graph.replay()
        return self.total.clone()
