"""The Numba engine: MuRP and MuRE on the CPU, fused and compiled; see :mod:`murp.engines.numba_steps`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.engines.engine import Chunk
from murp.engines.numba_math import ROUND_TO
from murp.engines.numba_slices import slice_gradients
from murp.engines.numba_steps import steps
from murp.geometry.poincare import limit_radius, set_back_radius
from murp.kernels.barrier import COUNTERS, THREADS
from murp.kernels.elementary import FORMATS
from murp.models import Model, MultiRelational
from murp.models.model import Rows

TABLES = ("entity", "subject_stretch", "translation", "subject_bias", "object_bias")
# Below this a gradient of the loss by a score is lost: see :func:`murp.engines.numba_murp.murp_positive`.
TINY = {torch.float32: 1e-17, torch.float64: 0.0}
LINE = 128  # bytes: two lines of a cache are fetched together
PIECE = 2**23  # coordinates read between two looks at the clock: some ten milliseconds


class Space(NamedTuple):
    """Every array a step writes to beside the tables, made once: no allocation while training.

    B positives, K candidates of each rounded up to whole vectors, d coordinates rounded up to lines of the cache, T
    threads.
    """

    moved: Any  # (B, d) the moved subject, or for MuRE R e_s - r
    r_copy: Any  # (B, d)
    of_x: Any  # (B, K) the coefficients of a candidate's gradient
    of_r: Any  # (B, K)
    of_self: Any  # (B, K)
    of_phi: Any  # (B, K)
    s_gradient: Any  # (B, d)
    m_gradient: Any  # (B, d)
    r_gradient: Any  # (B, d)
    s_bias_gradient: Any  # (B)
    losses: Any  # (B)
    head: Any  # (N) the last occurrence of each entity, or -1
    following: Any  # (occurrences) the occurrence before
    rows: Any  # (occurrences) the distinct entities
    relation_head: Any  # (R)
    relation_rows: Any  # (B)
    row: Any  # (T, d) the gradient of a row
    work: Any  # (T, 8, K) what a positive computes of its candidates
    scratch: Any  # (T, 2, K)
    bits: Any  # (T, 2, K) the same as integers
    form: Any  # of a double, see :mod:`murp.kernels.elementary`


class NumbaEngine:
    """Steps of the published MuRP or MuRE; the same bits whatever the number of threads."""

    name = "numba"

    def __init__(self, model: MultiRelational) -> None:
        self.model = model
        self.spaces: dict[tuple[int, int], Space] = {}
        self.choice = threads.Choice()

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """SGD remembers nothing."""
        return [{}]

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; this engine has one model."""
        (chunk,), (lr,) = chunks, rates
        return self.steps(chunk.positives, chunk.draw(), lr)[None]

    def steps(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """One step after another on positives (S, B, 3) and negatives (S, B, k); the sum of their mean losses."""
        shape = (positives.shape[1], negatives.shape[2])
        known = shape in self.spaces
        if not known:
            self.spaces[shape] = _space(self.model, *shape, self.choice.most)
        total = np.zeros(1)
        arguments = (_tables(self.model), _numbers(self.model, lr), self.spaces[shape], total)
        given = positives.contiguous().numpy(), negatives.contiguous().numpy()
        if not known:
            _run(1, *(array[:0] for array in given), *arguments)  # compiled before anything is timed
        # A few steps at a time: how many threads are best may change at any moment.
        piece = max(1, PIECE // (shape[0] * (2 + shape[1]) * self.model.dim))
        for start in range(0, len(positives), piece):
            part = [array[start : start + piece] for array in given]
            began = time.perf_counter()
            _run(self.choice.next(), *part, *arguments)
            self.choice.took((time.perf_counter() - began) / len(part[0]))
        return torch.from_numpy(total)[0]


class NumbaSlices:
    """Gradients of slices, on one thread; see :class:`murp.engines.slices.SliceGradients`."""

    name = "numba"

    def __init__(self) -> None:
        self.spaces: dict[int, Space] = {}

    def __call__(self, model: Model, positives: Tensor, negatives: Tensor, weight: float) -> tuple[Tensor, Rows]:
        """See :class:`murp.engines.slices.SliceGradients`."""
        assert isinstance(model, MultiRelational)
        size, false = negatives.shape
        if false not in self.spaces:
            self.spaces[false] = _space(model, 1, false, 1)
        found = {name: torch.zeros_like(model.parameters[name]) for name in TABLES[:3]}
        biases = torch.zeros(model.num_entities, 2, dtype=torch.float64)
        loss = slice_gradients(
            positives.contiguous().numpy(), negatives.contiguous().numpy(), size / weight, _tables(model),
            _numbers(model, 0.0), self.spaces[false], tuple(rows.numpy() for rows in found.values()),
            biases.numpy(),
        )  # fmt: skip
        found |= zip(TABLES[3:], biases.to(model.dtype).unbind(1), strict=True)
        return torch.tensor(loss, dtype=model.dtype), found


def _run(number: int, *arguments: Any) -> None:
    """Hand the steps to so many threads, or as many as the system gives."""
    counters = np.zeros(COUNTERS, np.int64)

    def begun(threads_there: int) -> None:
        counters[THREADS] = threads_there

    threads.together(lambda thread: steps(counters, thread, *arguments), number, begun=begun)


def _tables(model: MultiRelational) -> tuple[Any, ...]:
    return tuple(model.parameters[name].numpy() for name in TABLES)


def _numbers(model: MultiRelational, lr: float) -> tuple[float, ...]:
    return float(lr), model.geometry.c, limit_radius(model.dtype), set_back_radius(model.dtype), TINY[model.dtype]


def _apart(count: int, length: int, dtype: Any) -> Any:
    """Rows (count, at least ``length``) that begin on lines of the cache: no two threads write to the same line."""
    line = LINE // dtype.itemsize
    width = -(-length // line) * line
    room = np.zeros(count * width + line, dtype=dtype)
    first = -room.ctypes.data % LINE // dtype.itemsize
    return room[first : first + count * width].reshape(count, width)


def _space(model: MultiRelational, size: int, false: int, number: int) -> Space:
    dtype = model.parameters["entity"].numpy().dtype
    occurrences = size * (2 + false)
    candidates = -(-(1 + false) // ROUND_TO) * ROUND_TO

    def rows(count: int) -> Any:
        return _apart(count, model.dim, dtype)

    scratch = np.zeros((number, 2, candidates))
    return Space(
        moved=rows(size),
        r_copy=rows(size),
        of_x=np.zeros((size, candidates), dtype=dtype),
        of_r=np.zeros((size, candidates), dtype=dtype),
        of_self=np.zeros((size, candidates)),
        of_phi=np.zeros((size, candidates)),
        s_gradient=rows(size),
        m_gradient=rows(size),
        r_gradient=rows(size),
        s_bias_gradient=np.zeros(size),
        losses=np.zeros(size),
        head=torch.full((model.num_entities,), -1, dtype=torch.int32).numpy(),  # on large pages, where there are
        following=np.zeros(occurrences, dtype=np.int32),
        rows=np.zeros(occurrences, dtype=np.int64),
        relation_head=np.full(model.num_relations, -1, dtype=np.int32),
        relation_rows=np.zeros(size, dtype=np.int64),
        row=rows(number),
        work=np.zeros((number, 8, candidates)),
        scratch=scratch,
        bits=scratch.view(np.int64),
        form=FORMATS[np.dtype(np.float64)],
    )
