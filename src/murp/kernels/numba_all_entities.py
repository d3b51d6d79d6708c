"""All-entity objectives on the CPU: see :mod:`murp.kernels.all_entities`.

One kernel does a pass over the scores of some rows, queries or entities, and all columns of the other kind. A thread
takes a block of rows and walks over tiles of columns. A group of rows, one in each lane of the vectors, meets a tile at
a time: its scores become weights while they are in registers (:func:`murp.kernels.numba_tiles.weigh`), and the weights,
which stay in the innermost cache, are multiplied with the tile's vectors (:func:`murp.kernels.numba_products.mix`).
Columns are read one number at a time, so that every lane has work whatever d is, and a tile is read once for a group.

A softmax needs a shift near each row's largest score, which is known only at the end. A row begins with 0, and its
shift changes if a tile has a score that is far above it: then what was found before is multiplied accordingly, and the
tile is done again. That is rare, where to look for the largest score of a tile first would be a pass over all scores.

Both gradients take two passes, each of which computes the scores: to keep the weights of some queries in the cache that
the cores share was a little faster on one processor with few entities, and slower with more.

A batch may ask a question (s, r) several times, once for each of its answers. Equal queries have the same softmax. It
is then computed once (:func:`murp.kernels.numba_distinct.distinct_rows`).

A lane has a row of its own, and every operation is one that IEEE 754 defines to the bit. So the gradients have the
same bits on any number of threads, and on every processor but for the logarithm of a row's sum, which is PyTorch's.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import take
from murp.kernels.numba_distinct import distinct_rows
from murp.kernels.numba_products import PAIR, PANEL_BYTES, mix
from murp.kernels.numba_tiles import KNOWN, LOG2E, SEEK, SIGMOID, SOFTPLUS, powers, weigh

announce(__name__, "the scores of all entities")

_BLOCK = 128  # rows that meet a tile before the next one: they stay in a core's own cache
_TILE = 128  # columns: with a group of rows and its weights they stay in the innermost cache
_FAR = 40.0  # powers of 2 that a row's largest weight may be away from 1: far from the largest and the least number


def reduced(
    softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    """The mean and, if asked for, its gradients by q, v, a and c; all tensors are contiguous.

    ``shares`` (B) make a weighted mean of a softmax's logarithms.
    """
    if softmax:
        return _log_sum_exp(q, v, a, c, shares, gradients)
    size, number = len(q), len(v)
    queries, entities = _Side(q, a), _Side(v, c)
    first, second = _Found(queries, gradients), _Found(entities, gradients)
    scale = q.new_full((max(size, number),), 1 / (size * number))
    first.fill(SOFTPLUS, entities, scale[:size])
    value = first.total.sum() / (size * number)
    if not gradients:
        return (value,)
    second.fill(SIGMOID, queries, scale[:number])
    return value, first.gradient, second.gradient, first.weights, second.weights


def _log_sum_exp(
    q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    """As :func:`reduced`, of a softmax. Equal queries are computed once, with the sum of their shares."""
    each = q.new_full((len(q),), 1 / len(q)) if shares is None else shares
    chosen, place = distinct_rows(q, a)
    scale = each
    if repeated := len(chosen) < len(q):
        q, a = q[chosen], None if a is None else a[chosen]
        scale = each.new_zeros(len(chosen)).index_add_(0, place, each)
    entities = _Side(v, c)
    first, second = _Found(_Side(q, a), gradients), _Found(entities, gradients)
    ones = q.new_ones(len(q))
    if a is not None:  # a row's own number changes nothing of its weights, unless it is none
        ones = ones + (a - a)
    first.fill(SEEK, entities, ones)
    log = first.largest + first.total.log()
    value = (log if a is None else log + a) @ scale
    if not gradients:
        return (value,)
    # Weights exp(φ - shift) are made again, and each query has the factor that makes them its own.
    second.fill(KNOWN, _Side(q, -first.largest, scale * ones / first.total), None)
    of_q, of_a = first.gradient, ones * (first.total / first.total)  # NaN of a row without candidates
    if repeated:
        of_q, of_a = of_q[place], of_a[place]
    return value, of_q * each[:, None], second.gradient, of_a * each, second.weights


class _Side:
    """Vectors (R, d), a number for each, and a factor for its weights, as rows and as columns."""

    def __init__(self, vectors: Tensor, own: Tensor | None, factors: Tensor | None = None) -> None:
        self.vectors = vectors
        self.own, self.factors = (vectors.new_zeros(len(vectors)) if a is None else a for a in (own, factors))


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
        unit = LOG2E if kind in (SEEK, KNOWN) else 1.0
        number, dtype = threads.count(), rows.numpy().dtype
        lanes, dim = PANEL_BYTES // dtype.itemsize, rows.shape[1]
        starts = _starts(len(rows), number, PAIR * lanes)
        groups = -(-int(np.diff(starts).max()) // (PAIR * lanes))
        panels, tiles, sums, kept, numbers = (
            rows.new_zeros(number, *shape).numpy()  # PyTorch's memory begins with a line of the cache, as vectors do
            for shape in (
                (groups, PAIR, dim, lanes), (_TILE, PAIR * lanes), (groups, dim, PAIR * lanes),
                (groups + 1, 2, PAIR * lanes), (2, groups, PAIR * lanes),
            )
        )  # fmt: skip
        scale = rows.new_ones(len(rows)) if scale is None else scale
        work = rows.numel() * len(columns.vectors) * (2 if self.gradients else 1)
        threads.share(
            _passed, kind, self.gradients, starts, dtype.type(unit), rows.numpy(), self.side.own.numpy(),
            scale.contiguous().numpy(), columns.vectors.numpy(), (columns.own * unit).numpy(), columns.factors.numpy(),
            panels, tiles, sums, kept, numbers, self.largest.numpy(), self.total.numpy(), self.weights.numpy(),
            self.gradient.numpy(), work=work,
        )  # fmt: skip


@cache
def _starts(rows: int, threads: int, group: int) -> Any:
    """Where blocks of rows begin, and the number of rows. The last blocks are small: no thread waits long for another.

    Their sizes change no bit: what is found of a row does not depend on the others.
    """
    starts = [0]
    while starts[-1] < rows:
        size = min(_BLOCK, (rows - starts[-1]) // (2 * threads)) // group * group
        starts.append(min(rows, starts[-1] + max(size, group)))
    return np.array(starts)


@kernel
def _passed(
    counters: Any, kind: int, gradients: bool, starts: Any, unit: Any, x: Any, own: Any, scale: Any, vectors: Any,
    beside: Any, factors: Any, panels: Any, tiles: Any, sums: Any, kept: Any, numbers: Any, largest: Any, total: Any,
    weights: Any, gradient: Any,
) -> None:  # fmt: skip
    """Take blocks of rows until none is left; counters[0] is the next, counters[1] the next thread's room."""
    thread = take(counters, 1, 1)
    if thread >= len(tiles):  # more threads than when they were made: the others do the work
        return
    groups, tile, result, found = panels[thread], tiles[thread], sums[thread], kept[thread]
    shifts, seen = numbers[thread, 0], numbers[thread, 1]
    part = found[-1]  # of one tile
    wide = groups.shape[3]
    group = groups.shape[1] * wide
    zero = x.dtype.type(0)
    least = x.dtype.type(-np.inf if kind == SEEK else 0)  # of largest scores, or of sums
    while True:
        block = take(counters, 0, 1)
        if block >= len(starts) - 1:
            return
        start = starts[block]
        number = starts[block + 1] - start
        shifts[:] = zero
        for b in range(number):
            g, lane = b // group, b % group
            panel, at = groups[g, lane // wide], lane % wide
            for j in range(x.shape[1]):
                panel[j, at] = x[start + b, j]
            if kind != SEEK:
                shifts[g, lane] = own[start + b] * unit
        seen[:] = zero
        result[:] = zero
        found[:] = zero
        for t in range(0, len(vectors), _TILE):
            end = min(t + _TILE, len(vectors))
            for g in range(-(-number // group)):
                part[0], part[1] = zero, least
                weigh(kind, vectors[t:end], groups[g], beside[t:end], factors[t:end], shifts[g], tile, part)
                if kind == SEEK and _moved(part[1], shifts[g], seen[g], found[g, 0], result[g]):
                    part[0], part[1] = zero, least
                    weigh(kind, vectors[t:end], groups[g], beside[t:end], factors[t:end], shifts[g], tile, part)
                for i in range(1 if kind == SEEK else 2):
                    for lane in range(group):
                        found[g, i, lane] += part[i, lane]
                if gradients:
                    mix(vectors[t:end], tile[: end - t], result[g])
        for b in range(number):
            g, lane = b // group, b % group
            of_weights, second = found[g, 0, lane], found[g, 1, lane]
            largest[start + b] = -shifts[g, lane] / unit
            total[start + b] = of_weights if kind == SEEK else second
            weights[start + b] = of_weights * scale[start + b]
            factor = scale[start + b] / of_weights if kind == SEEK else scale[start + b]
            row = result[g]
            for j in range(gradient.shape[1]):
                gradient[start + b, j] = row[j, lane] * factor


@kernel
def _moved(largest: Any, shifts: Any, seen: Any, total: Any, result: Any) -> bool:
    """Change the shifts of rows whose largest score of a tile is far from 0 with it; whether one has changed.

    What was found before is multiplied accordingly. ``seen`` is 1 for rows that have had a score above -∞.
    """
    changed = False
    for lane in range(len(largest)):
        changed |= _is_far(largest[lane], seen[lane])
    factors = largest  # of what was found before, as powers of 2; -∞ if nothing was
    for lane in range(len(largest)):
        top, before = largest[lane], seen[lane]
        if top != -np.inf:
            seen[lane] = 1
        if changed:
            far = _is_far(top, before)
            shifts[lane] -= top if far else 0
            factors[lane] = (-top if before == 1 else -np.inf) if far else 0
    if not changed:
        return False
    powers(factors)
    for lane in range(len(factors)):
        total[lane] *= factors[lane]
    for j in range(len(result)):
        for lane in range(len(factors)):
            result[j, lane] *= factors[lane]
    return True


@kernel
def _is_far(top: Any, seen: Any) -> Any:
    return top > _FAR or (seen == 0 and -np.inf < top < -_FAR)
