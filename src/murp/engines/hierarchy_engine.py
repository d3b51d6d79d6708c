"""The engine of Poincaré and Lorentz embeddings on the CPU, compiled; see :mod:`murp.engines.numba_hierarchy`.

The loop works on a copy of the table whose rows are whole vectors; the model's own is written after each call.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.engines.engine import Chunk
from murp.engines.numba_hierarchy import steps
from murp.engines.numba_math import ROUND_TO
from murp.engines.task import Task
from murp.geometry import hyperboloid, poincare
from murp.kernels.barrier import COUNTERS, THREADS
from murp.kernels.elementary import FORMATS
from murp.kernels.intrinsics import LANES
from murp.models.hierarchy import Distance, Poincare
from murp.negatives.unrelated import Relatives, Unrelated
from murp.objectives.rank import Rank
from murp.objectives.softmax import Softmax
from murp.optimizers.adagrad import Adagrad
from murp.optimizers.optimizer import TABLES
from murp.optimizers.sgd import SGD
from murp.regularizers.none import Nothing

SUMS = f"{TABLES}entity.sum"
PIECE = 2**22  # coordinates read between two looks at the clock: some ten milliseconds


class Space(NamedTuple):
    """Every array a step writes to beside the table. B positives, k negatives, w numbers a row, T threads."""

    false: Any  # (B, k) the negatives
    subjects: Any  # (B, w) the subjects before the step
    gradients: Any  # (B, w) theirs
    of_difference: Any  # (B, 1 + k) a
    of_self: Any  # (B, 1 + k) b
    losses: Any  # (B)
    head: Any  # (N) the last occurrence of each entity, or -1
    following: Any  # (occurrences) the occurrence before
    rows: Any  # (occurrences) the distinct entities
    row: Any  # (T, w) the gradient of a row
    work: Any  # (T, 5, K), K candidates rounded up to whole vectors
    scratch: Any  # (T, 2, K)
    bits: Any  # (T, 2, K) the same as integers
    form: Any  # of a double, see :mod:`murp.kernels.elementary`


def cannot(task: Task) -> str | None:
    """Why this engine cannot train a task on the CPU; None if it can."""
    model = task.model
    if not isinstance(model, Distance):
        return "knows Poincaré and Lorentz embeddings"
    if model.dtype != torch.float64 or model.uses_chance:
        return "trains Poincaré and Lorentz embeddings in float64, without dropout"
    usual = type(task.objective) in (Softmax, Rank) and type(task.regularizer) is Nothing and not task.optimizer.clip
    parts = type(task.negatives) in (Unrelated, Relatives) and type(task.optimizer) in (SGD, Adagrad)
    if not (usual and parts):
        return (
            "trains hierarchies with objective softmax or rank, corruption unrelated or relatives, optimizer sgd or "
            "adagrad without clip, and no regularizer"
        )
    return None


class HierarchyEngine:
    """Steps of Poincaré or Lorentz embeddings; the same bits whatever the number of threads."""

    name = "numba"

    def __init__(self, task: Task) -> None:
        assert isinstance(task.model, Distance)
        assert isinstance(task.negatives, Unrelated)
        self.model = task.model
        self.negatives = task.negatives
        self.spaces: dict[tuple[int, int], Space] = {}
        self.choice = threads.Choice()
        self.table: Any = None
        self.eps = 0.0
        self.softness = task.objective.softness if isinstance(task.objective, Rank) else 0.0
        self.state: dict[str, Tensor] = {}
        if isinstance(task.optimizer, Adagrad):
            self.eps = task.optimizer.eps
            self.state[SUMS] = torch.zeros(self.model.num_entities, 1, dtype=torch.float64)

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """Adagrad's sums; SGD remembers nothing."""
        return [self.state]

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; this engine has one model, and draws the negatives itself."""
        (chunk,), (lr,) = chunks, rates
        nothing = np.zeros((0, 0, 0), np.int64)
        return self._steps(chunk.positives.numpy(), nothing, chunk.negatives, chunk.seed, lr)[None]

    def steps(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """One step after another on positives (S, B, 3) and negatives (S, B, k); the sum of their mean losses."""
        return self._steps(positives.numpy(), negatives.contiguous().numpy(), negatives.shape[2], 0, lr)

    def _steps(self, positives: Any, given: Any, false: int, seed: int, lr: float) -> Tensor:
        own = self.model.parameters["entity"].numpy()
        if self.table is None:
            self.table = _vectors(len(own), own.shape[1])
        self.table[:, : own.shape[1]] = own
        shape = (positives.shape[1], false)
        known = shape in self.spaces
        if not known:
            self.spaces[shape] = _space(len(own), self.table.shape[1], *shape, self.choice.most)
        total = np.zeros(1)
        related = self._related()
        squares = self.state[SUMS].numpy() if self.state else np.zeros((0, 1))
        rest = (self.table, squares, self._numbers(lr), self.spaces[shape], total)
        positives = np.ascontiguousarray(positives)
        if not known:
            _run(1, positives[:0], given[:0], (seed, 0, *related), *rest)  # compiled before anything is timed
        piece = max(1, PIECE // (shape[0] * (2 + false) * self.table.shape[1]))
        for start in range(0, len(positives), piece):
            part = positives[start : start + piece]
            began = time.perf_counter()
            _run(self.choice.next(), part, given[start : start + piece], (seed, start, *related), *rest)
            self.choice.took((time.perf_counter() - began) / len(part))
        own[:] = self.table[:, : own.shape[1]]
        return torch.from_numpy(total)[0]

    def _related(self) -> tuple[Any, ...]:
        """What negatives are drawn from; of given ones nothing was prepared."""
        names = ("related", "starts", "below", "below_starts")
        tables = (getattr(self.negatives, name, torch.zeros(0, dtype=torch.int64)) for name in names)
        return tuple(table.numpy() for table in tables)

    def _numbers(self, lr: float) -> tuple[float, ...]:
        if isinstance(self.model, Poincare):
            radii = poincare.limit_radius(torch.float64), poincare.set_back_radius(torch.float64)
            return float(lr), 1.0, *radii, self.eps, self.softness
        return float(lr), 0.0, hyperboloid.limit_radius(torch.float64), 0.0, self.eps, self.softness


def _run(number: int, *arguments: Any) -> None:
    """Hand the steps to so many threads, or as many as the system gives."""
    counters = np.zeros(COUNTERS, np.int64)

    def begun(threads_there: int) -> None:
        counters[THREADS] = threads_there

    threads.together(lambda thread: steps(counters, thread, *arguments), number, begun=begun)


def _vectors(count: int, length: int) -> Any:
    """Rows (count, at least ``length``) of 0, each of whole vectors, which begin on lines of the cache."""
    width = -(-length // LANES) * LANES
    room = np.zeros((count + 1) * width)
    first = -room.ctypes.data % (LANES * room.itemsize) // room.itemsize
    return room[first : first + count * width].reshape(count, width)


def _space(entities: int, width: int, size: int, false: int, number: int) -> Space:
    occurrences = size * (2 + false)
    candidates = -(-(1 + false) // ROUND_TO) * ROUND_TO
    real = np.dtype(np.float64)
    scratch = np.zeros((number, 2, candidates))
    return Space(
        false=np.zeros((size, false), np.int64),
        subjects=_vectors(size, width),
        gradients=_vectors(size, width),
        of_difference=np.zeros((size, 1 + false)),
        of_self=np.zeros((size, 1 + false)),
        losses=np.zeros(size),
        head=np.full(entities, -1, np.int32),
        following=np.zeros(occurrences, np.int32),
        rows=np.zeros(occurrences, np.int64),
        row=_vectors(number, width),
        work=np.zeros((number, 5, candidates)),
        scratch=scratch,
        bits=scratch.view(np.int64),
        form=FORMATS[real],
    )
