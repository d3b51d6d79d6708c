"""The PyTorch engine: every model, objective and optimizer, on the CPU and on CUDA.

On the CPU the steps run one after another. Where every row of a batch is computed by itself they run on as many of
PyTorch's threads as are quickest at the moment, which beside busy neighbours is one: PyTorch cuts rows among its
threads, and the result is the same. Where sums go over the batch (tables or candidates that it shares) PyTorch may cut
a sum, and the number of threads follows from the size of a step alone. So it does for models of other packages: some
functions have other bits where PyTorch cuts a tensor (:data:`murp.engines.step.CUT`), and nobody knows which they use.

On CUDA many steps are captured in one graph, with fixed shapes, and replayed: a step is some hundred small kernels, and
launching them from Python would cost many times what they compute. A run long enough to earn it back is compiled as
well, which makes the hundred kernels a dozen or two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from murp import threads
from murp.engines.capture import collector_at_rest
from murp.engines.engine import WHOLE, Chunk
from murp.engines.memory import keep_freed
from murp.engines.step import CUT, Touched, gather, loss_of, reads_most, row_gradients
from murp.engines.task import Task
from murp.engines.updates import Updater
from murp.models.model import Model
from murp.negatives import Drawn
from murp.negatives.uniform import Uniform
from murp.objectives import Labels

Step = Callable[[Tensor, "Drawn | None", "Labels | None", "float | Tensor"], Tensor]

OURS = "murp.models."  # modules of models whose functions of many numbers have the same bits wherever they are cut
PIECE = 4  # steps on the CPU between two looks at the clock
WORTH_A_THREAD = 2**22  # numbers of a step on the CPU
A_GRAPH = 32  # steps on CUDA that are captured as one
WARM = 3  # steps on CUDA of each shape that are not


class TorchEngine:
    """Steps by autograd over the gathered rows; see :mod:`murp.engines.step`.

    On CUDA steps are replayed from a graph, and after ``compile_after`` seconds, by default the task's, from a graph
    of compiled kernels.
    """

    name = "torch"

    def __init__(self, task: Task | Model, compile_after: float | None = None) -> None:
        self.task = task if isinstance(task, Task) else Task(task)
        self.model = self.task.model
        self.compile_after = self.task.compile_after if compile_after is None else compile_after
        self.began: float | None = None
        self.updater = Updater(self.task)
        self.graphs: dict[tuple[int, ...], CapturedSteps] = {}
        self.compiled_steps: dict[bool, Step] = {}  # by whether they read tables as a whole
        self.warm: dict[tuple[int, ...], int] = {}  # steps of a shape before it was captured
        # One stream for all that is not on the usual one: libraries keep memory for every stream they have seen.
        self.aside = torch.cuda.Stream() if self.model.device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self.shared = sum(math.prod(table.shape) for table in self.model.tables if table.of == "shared")
        known = type(self.model).__module__.startswith(OURS)
        rows_apart = not self.shared and self.task.objective.sampled and type(self.task.negatives) is Uniform
        self.rows_apart = rows_apart and known
        self.choice = threads.Choice()
        if self.model.device.type == "cpu":
            keep_freed()

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """The optimizer's tables, beside the parameters what a checkpoint keeps."""
        return [self.updater.state]

    def step(
        self, positives: Tensor, negatives: Tensor | Drawn | None, lr: float | Tensor, labels: Labels | None = None
    ) -> Tensor:
        """One step on positives (B, 3) and their negatives (B, k); the mean loss before it."""
        drawn = Drawn(negatives) if isinstance(negatives, Tensor) else negatives
        loss, touched = row_gradients(self.task, positives, drawn, labels)
        self._update(touched, lr, self.updater.update)
        return loss

    def _update(self, touched: Touched, lr: float | Tensor, update: Callable[..., None]) -> None:
        self.updater.prepare(touched)
        update(self.updater.tables(), touched, lr)

    def compiled_step(self, whole: bool) -> Step:
        """:meth:`step` with its reading, its loss, its gradient and its update compiled for one shape.

        ``whole``: batches read tables as a whole. Small kernels are then compiled side by side, which saves a fifth of
        a step on an H200. The others are slower with that, as one of their kernels is cut badly.
        """
        options: dict[str, Any] = {"combo_kernels": True} if whole else {"triton.autotune_pointwise": False}
        parts: tuple[Any, ...] = (gather, loss_of, self.updater.update)
        gathering, loss, update = (torch.compile(part, dynamic=False, options=options) for part in parts)

        def step(positives: Tensor, drawn: Drawn | None, labels: Labels | None, lr: float | Tensor) -> Tensor:
            found, touched = row_gradients(self.task, positives, drawn, labels, loss, gathering)
            self._update(touched, lr, update)
            return found

        return step

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; this engine has one model."""
        (chunk,), (lr,) = chunks, rates
        with self._training(chunk.seed):
            return self._chunk(chunk, lr)[None]

    def steps(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """One step after another on positives (S, B, 3) and negatives (S, B, k); the sum of their mean losses."""
        with self._training(0):
            return self._some(positives, Drawn(negatives), None, lr)

    @contextmanager
    def _training(self, seed: int) -> Iterator[None]:
        """The model in training, and dropout's random numbers a function of ``seed``; outside all is as before."""
        device = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(device, enabled=bool(self.model.uses_chance)):
            if self.model.uses_chance:
                torch.manual_seed(seed)
            self.model.training = True
            try:
                yield
            finally:
                self.model.training = False

    def _chunk(self, chunk: Chunk, lr: float) -> Tensor:
        """In pieces whose negatives lie in memory at once."""
        if not self.task.objective.sampled:
            return self._some(chunk.positives, None, chunk.labels, lr)
        total = torch.zeros((), dtype=self.model.dtype, device=self.model.device)
        for some, drawn in pieces(self.task, chunk):
            total += self._some(some, drawn, None, lr)
        return total

    def _some(self, positives: Tensor, drawn: Drawn | None, labels: Labels | None, lr: float) -> Tensor:
        """Steps on positives (S, B, 3), their negatives (S, …) or their labels (S, L)."""
        if self.model.device.type == "cuda":
            return self._replayed(positives, drawn, labels, lr)
        total = torch.zeros((), dtype=self.model.dtype)
        before = torch.get_num_threads()
        steady = self._steady(positives.shape[1], drawn)
        any_number = self.rows_apart and positives.shape[1] < CUT  # one number of each triple is not cut
        try:
            for start in range(0, len(positives), PIECE):
                threads.use_torch(self.choice.next() if any_number else steady)
                began = time.perf_counter()
                steps = range(start, min(start + PIECE, len(positives)))
                for i in steps:
                    total += self.step(positives[i], _at(drawn, i), lr, _labels_at(labels, i))
                self.choice.took((time.perf_counter() - began) / len(steps))
        finally:
            threads.use_torch(before)
        return total

    def _steady(self, batch: int, drawn: Drawn | None) -> int:
        """Threads for a step in which sums go over the batch: a function of its size, so that resuming is exact.

        Scores of all entities have threads of their own (:mod:`murp.kernels.all_entities`), so only rows count there.
        """
        rows = batch + self.model.num_entities if drawn is None else batch * (1 + drawn.objects.shape[-1])
        numbers = rows * self.model.dim + batch * self.shared
        return min(threads.count(), 1 + numbers // WORTH_A_THREAD)

    def _replayed(self, positives: Tensor, drawn: Drawn | None, labels: Labels | None, lr: float) -> Tensor:
        """Whole graphs of steps, then what is left step by step.

        Capturing needs a warm allocator and warm libraries, and the first steps of a shape warm them.
        """
        total = torch.zeros((), dtype=self.model.dtype, device=self.model.device)
        start = 0
        self.began = time.monotonic() if self.began is None else self.began
        while start < len(positives):
            compiled = time.monotonic() - self.began >= self.compile_after
            many = A_GRAPH if len(positives) - start >= A_GRAPH else 1
            shape = (compiled, *_shapes(positives[:1], _at(drawn, slice(0, 1)), _labels_at(labels, slice(0, 1))))
            step = self._compiled(positives[0], _at(drawn, 0)) if compiled else self._plain
            if self.warm.get(shape, 0) < WARM:
                self.warm[shape] = self.warm.get(shape, 0) + 1
                rate = torch.full((), lr, dtype=self.model.dtype, device=self.model.device)
                total += self._aside(step, positives[start], _at(drawn, start), _labels_at(labels, start), rate)
                many = 1
            else:
                steps = slice(start, start + many)
                some, false, true = positives[steps], _at(drawn, steps), _labels_at(labels, steps)
                if (many, *shape) not in self.graphs:
                    self.graphs[many, *shape] = CapturedSteps(self.model, step, some, false, true, self.aside)
                total += self.graphs[many, *shape].replay(some, false, true, lr)
            start += many
        return total

    def _aside(self, step: Step, positives: Tensor, drawn: Drawn | None, labels: Labels | None, rate: Tensor) -> Tensor:
        """A step on a stream of its own, as capturing asks for."""
        assert self.aside is not None
        self.aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.aside):
            found = step(positives, drawn, labels, rate)
        torch.cuda.current_stream().wait_stream(self.aside)
        return found

    def _plain(self, positives: Tensor, drawn: Drawn | None, labels: Labels | None, lr: float | Tensor) -> Tensor:
        return self.step(positives, drawn, lr, labels)

    def _compiled(self, positives: Tensor, drawn: Drawn | None) -> Step:
        whole = drawn is None or reads_most(self.task, positives, drawn)
        if whole not in self.compiled_steps:
            self.compiled_steps[whole] = self.compiled_step(whole)
        return self.compiled_steps[whole]


def pieces(task: Task, chunk: Chunk, part: slice = WHOLE) -> Iterator[tuple[Tensor, Drawn]]:
    """A chunk's positives (S, B, 3) with the negatives that are drawn for them, a piece after another.

    Negatives of a triple of its own come for those in ``part`` of each batch alone; a chunk may have no others.
    """
    own = task.negatives
    plain = type(own).draw is Uniform.draw  # a class of a user's may draw otherwise
    if isinstance(own, Uniform) and plain and chunk.positives.device.type == "cpu":
        yield chunk.positives, Drawn(own.entities(chunk.draw(part, own.choices), chunk.batch, part))
        return
    generator = torch.Generator(chunk.positives.device).manual_seed(chunk.seed)
    for start in range(0, chunk.steps, A_GRAPH):
        some = chunk.positives[start : start + A_GRAPH]
        yield some, task.negatives.draw(chunk.padded(some), generator).of(part)


class CapturedSteps:
    """Some steps for a fixed batch size and number of negatives as a CUDA graph."""

    def __init__(
        self,
        model: Model,
        step: Step,
        positives: Tensor,
        drawn: Drawn | None,
        labels: Labels | None,
        stream: torch.cuda.Stream | None,
    ) -> None:
        self.positives = positives.clone()
        self.drawn = drawn and Drawn(drawn.objects.clone(), None if drawn.subjects is None else drawn.subjects.clone())
        self.labels = labels and Labels(labels.rows.clone(), labels.objects.clone(), labels.weight.clone())
        self.lr = torch.zeros((), dtype=model.dtype, device=model.device)
        self.total = torch.zeros((), dtype=model.dtype, device=model.device)
        self.graph = torch.cuda.CUDAGraph()
        with collector_at_rest(), torch.cuda.graph(self.graph, stream=stream):
            for i in range(len(positives)):
                self.total += step(self.positives[i], _at(self.drawn, i), _labels_at(self.labels, i), self.lr)

    def replay(self, positives: Tensor, drawn: Drawn | None, labels: Labels | None, lr: float) -> Tensor:
        """Run the captured steps on these batches."""
        self.lr.fill_(lr)
        self.total.zero_()
        self.positives.copy_(positives)
        for own, given in zip(_tensors(self.drawn, self.labels), _tensors(drawn, labels), strict=True):
            own.copy_(given)
        self.graph.replay()
        return self.total.clone()


def _at(drawn: Drawn | None, place: int | slice) -> Drawn | None:
    if drawn is None:
        return None
    return Drawn(drawn.objects[place], None if drawn.subjects is None else drawn.subjects[place])


def _labels_at(labels: Labels | None, place: int | slice) -> Labels | None:
    return labels and Labels(labels.rows[place], labels.objects[place], labels.weight[place])


def _tensors(drawn: Drawn | None, labels: Labels | None) -> list[Tensor]:
    found = [] if drawn is None else [drawn.objects, *([] if drawn.subjects is None else [drawn.subjects])]
    return found + ([] if labels is None else [labels.rows, labels.objects, labels.weight])


def _shapes(positives: Tensor, drawn: Drawn | None, labels: Labels | None) -> list[int]:
    return [size for tensor in (positives, *_tensors(drawn, labels)) for size in tensor.shape]
