"""All-entity objectives on the CPU: see :mod:`murp.kernels.all_entities`.

One kernel does a pass over the scores of some rows, queries or entities, and all columns of the other kind. A thread
takes a block of rows and walks over tiles of columns: it makes a tile of scores
(:func:`murp.kernels.numba_products.multiply_groups`), turns it into weights in place, and multiplies it with the tile's
vectors (:func:`murp.kernels.numba_products.mix`). The tile stays in the core's own cache.

Both gradients take two passes, each of which computes the scores: to keep the weights of some queries in the cache that
the cores share was a little faster on one processor with few entities, and slower with more.

No sum is shared by two threads, and every operation is one that IEEE 754 defines to the bit. So the gradients have the
same bits on any number of threads, and on every processor but for the logarithm of a row's sum, which is PyTorch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import fma, take
from murp.kernels.numba_products import PANEL_BYTES, PITCH, POINTS, mix, multiply_groups, pack
from murp.kernels.numba_weights import KNOWN, SEEK, SIGMOID, SOFTPLUS, weigh, weigh_seeking

announce(__name__, "the scores of all entities")

# Columns of a tile are PITCH at most: with a block of rows and its vectors it stays in a core's own cache.
_BLOCK = 64  # rows, a multiple of those that meet a panel at once


def reduced(
    softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    """The mean and, if asked for, its gradients by q, v, a and c; all tensors are contiguous.

    ``shares`` (B) make a weighted mean of a softmax's logarithms.
    """
    size, number = len(q), len(v)
    queries, entities = _Side(q, a), _Side(v, c)
    first, second = _Found(queries, gradients), _Found(entities, gradients)
    scale = q.new_full((size,), 1 / (size if softmax else size * number)) if shares is None else shares
    if softmax and a is not None:  # a row's own number changes nothing of its weights, unless it is none
        scale = scale + (a - a)
    first.fill(SEEK if softmax else SOFTPLUS, entities, scale)
    if softmax:
        log = first.largest + first.total.log()
        own = log if a is None else log + a
        value = own.mean() if shares is None else own @ shares
    else:
        value = first.total.sum() / (size * number)
    if not gradients:
        return (value,)
    if softmax:
        queries.own = scale.log() - log
        second.fill(KNOWN, queries, None)
    else:
        second.fill(SIGMOID, queries, scale[:1].expand(number))
    of_rows = scale * (first.total / first.total) if softmax else first.weights  # NaN of a row without candidates
    return value, first.gradient, second.gradient, of_rows, second.weights


class _Side:
    """Vectors (R, d) and a number for each, as rows and as columns."""

    def __init__(self, vectors: Tensor, own: Tensor | None) -> None:
        self.vectors = vectors
        self.own = vectors.new_zeros(len(vectors)) if own is None else own

    def columns(self) -> tuple[Any, Any, Any]:
        """Panels of whole tiles, the vectors of the last two, and the number of each column, -∞ beyond the last.

        Vectors are read in whole lanes, beyond the end of the last one: so the last tiles are copied, with room there.
        """
        rows = self.vectors.numpy()
        lanes = PANEL_BYTES // rows.itemsize
        count, dim = rows.shape
        width = min(PITCH, -(-count // lanes) * lanes)
        number = -(-count // width)
        panels = np.empty((number * width // lanes, dim, lanes), rows.dtype)
        panels[count // lanes :] = 0
        threads.share(pack, rows, panels, work=rows.size)
        copied = min(2, number) * width
        last = np.zeros(copied * dim + lanes, rows.dtype)[: copied * dim].reshape(copied, dim)
        last[: count - number * width + copied] = rows[number * width - copied :]
        beside = np.full((number, width), -np.inf, rows.dtype)
        beside.reshape(-1)[:count] = self.own.numpy()
        return panels, last, beside


class _Found:
    """What a pass finds of each row."""

    def __init__(self, side: _Side, gradients: bool) -> None:
        rows = len(side.vectors)
        self.side, self.gradients = side, gradients
        self.largest, self.total, self.weights = (side.vectors.new_empty(rows) for _ in range(3))
        self.gradient = torch.empty_like(side.vectors) if gradients else side.vectors.new_empty(0, 0)

    def fill(self, kind: int, columns: _Side, scale: Tensor | None) -> None:
        """The sums, and the gradients of the sum over rows with the weights ``scale`` (R); None: all are 1."""
        rows = self.side.vectors
        panels, last, beside = columns.columns()
        number, dtype = threads.count(), panels.dtype
        # Several blocks for each thread, so that none waits long for the last; their size changes no bit.
        block = max(8, min(_BLOCK, len(rows) // (4 * number) // 8 * 8))
        _, dim, lanes = panels.shape
        whole = -(-block // POINTS) * POINTS  # rows in whole groups; those that are none have weights of no use
        room = np.zeros((number, whole, PITCH), dtype)
        groups = np.zeros((number, whole // POINTS, dim, POINTS), dtype)
        sums = np.zeros((number, 2, whole, -(-dim // lanes) * lanes), dtype)
        scratch = np.zeros((number, 2, _BLOCK), dtype)
        scale = rows.new_ones(len(rows)) if scale is None else scale
        work = rows.numel() * len(columns.vectors) * (2 if self.gradients else 1)
        threads.share(
            _passed, kind, self.gradients, rows.numpy(), self.side.own.numpy(), scale.contiguous().numpy(), panels,
            columns.vectors.numpy(), last, beside, block, room, groups, sums, scratch, self.largest.numpy(),
            self.total.numpy(), self.weights.numpy(), self.gradient.numpy(), work=work,
        )  # fmt: skip


@kernel
def _passed(
    counters: Any, kind: int, gradients: bool, x: Any, own: Any, scale: Any, panels: Any, vectors: Any, last: Any,
    beside: Any, block: int, room: Any, groups: Any, sums: Any, scratch: Any, largest: Any, total: Any, weights: Any,
    gradient: Any,
) -> None:  # fmt: skip
    """Take blocks of rows until none is left; counters[0] is the next row, counters[1] the next thread's room."""
    thread = take(counters, 1, 1)
    if thread >= len(room):  # more threads than when it was made: the others do the work
        return
    scores, kept, zeros = room[thread], scratch[thread, 0], scratch[thread, 1]
    result, part = sums[thread, 0], sums[thread, 1]
    abreast = len(panels) // len(beside)
    width, lanes = beside.shape[1], panels.shape[2]
    zero = x.dtype.type(0)
    kept[:] = x.dtype.type(1)
    while True:
        start = take(counters, 0, block)
        if start >= len(x):
            return
        stop = min(start + block, len(x))
        number = stop - start
        some = groups[thread, : -(-number // POINTS)]
        for b in range(number):
            for j in range(x.shape[1]):
                some[b // POINTS, j, b % POINTS] = x[start + b, j]
        largest[start:stop] = -np.inf
        total[start:stop] = zero
        weights[start:stop] = zero
        result[:] = zero
        for t in range(len(beside)):
            multiply_groups(some, panels, t * abreast, (t + 1) * abreast, scores)
            if kind == SEEK:
                weigh_seeking(scores[:, :width], beside[t], largest[start:stop], total[start:stop], kept, zeros)
            else:
                weigh(kind, scores[:, :width], beside[t], own[start:stop], total[start:stop], weights[start:stop])
            if gradients:
                at = (t - len(beside)) * width  # from the end
                tile = vectors[t * width : (t + 1) * width] if t + 2 < len(beside) else last[at + len(last) :][:width]
                mix(scores, number, tile, lanes, part)
                for b in range(number):
                    for j in range(result.shape[1]):
                        result[b, j] = fma(result[b, j], kept[b], part[b, j])
        for b in range(number):
            factor = scale[start + b] / total[start + b] if kind == SEEK else scale[start + b]
            weights[start + b] *= scale[start + b]
            for j in range(gradient.shape[1]):
                gradient[start + b, j] = result[b, j] * factor
