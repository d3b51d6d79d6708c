"""All-entity objectives on the CPU: see :mod:`murp.kernels.all_entities`.

One kernel does a pass over the scores of some rows, queries or entities, and all columns of the other kind. A thread
takes a block of rows and walks over tiles of columns. A group of rows meets a tile at a time: its scores become weights
while they are in registers (:func:`murp.kernels.numba_tiles.weigh`), and the weights, which stay in the innermost
cache, are multiplied with the tile's vectors (:func:`murp.kernels.numba_products.mix`).

A softmax needs a shift near each row's largest score, which is known only at the end. A row begins with 0, and its
shift changes if a tile has a score that is far above it: then what was found before is multiplied accordingly, and the
tile is done again. That is rare, where to look for the largest score of a tile first would be a pass over all scores.

Both gradients take two passes, each of which computes the scores: to keep the weights of some queries in the cache that
the cores share was a little faster on one processor with few entities, and slower with more.

A batch may ask a question (s, r) several times, once for each of its answers. Equal queries have the same softmax. It
is then computed once (:func:`murp.kernels.numba_distinct.distinct_rows`).

No sum is shared by two threads, and every operation is one that IEEE 754 defines to the bit. So the gradients have the
same bits on any number of threads, and on every processor but for the logarithm of a row's sum, which is PyTorch's.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import take
from murp.kernels.numba_distinct import distinct_rows
from murp.kernels.numba_products import PAIR, PANEL_BYTES, PITCH, POINTS, mix, pack
from murp.kernels.numba_tiles import (
    KNOWN,
    SEEK,
    SIGMOID,
    SOFTPLUS,
    add,
    any_above,
    empty,
    powers,
    total_of,
    weigh,
)

announce(__name__, "the scores of all entities")

_BLOCK = 64  # rows that meet a tile before the next one: they stay in a core's own cache
_LOG2E = 1 / math.log(2)
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
    # Weights exp(φ - shift) are made again, and each query has the factor that makes them its own; of points as the
    # first pass had them, so that scores have the same bits.
    factors = scale * ones / first.total
    second.fill(KNOWN, _Side(q * factors[:, None], -first.largest, q * _LOG2E, factors), None)
    of_q, of_a = first.gradient, ones * (first.total / first.total)  # NaN of a row without candidates
    if repeated:
        of_q, of_a = of_q[place], of_a[place]
    return value, of_q * each[:, None], second.gradient, of_a * each, second.weights


class _Side:
    """Vectors (R, d) and a number for each, as rows and as columns; scores may be of other ``points`` (R, d)."""

    def __init__(
        self, vectors: Tensor, own: Tensor | None, points: Tensor | None = None, factors: Tensor | None = None
    ) -> None:
        self.vectors = vectors
        self.points = vectors if points is None else points
        self.own, self.factors = (vectors.new_zeros(len(vectors)) if a is None else a for a in (own, factors))

    def columns(self, unit: float) -> tuple[Any, ...]:
        """Panels, in whole pairs, the vectors of the last two tiles, each column's number · unit, -∞ beyond the last,
        and its factor.

        Vectors are read in whole lanes, beyond the end of the last one: so the last tiles are copied, with room there.
        """
        rows = self.vectors.numpy()
        lanes = PANEL_BYTES // rows.itemsize
        count, dim = rows.shape
        pair = PAIR * lanes
        width = min(PITCH, -(-count // pair) * pair)
        number = -(-count // width)
        panels = np.empty((-(-count // pair) * PAIR, dim, lanes), rows.dtype)
        panels[count // lanes :] = 0
        threads.share(pack, self.points.numpy(), panels, work=rows.size)
        copied = min(2, number) * width
        last = np.zeros(copied * dim + lanes, rows.dtype)[: copied * dim].reshape(copied, dim)
        last[: count - number * width + copied] = rows[number * width - copied :]
        beside = np.full((number, width), -np.inf, rows.dtype)
        beside.reshape(-1)[:count] = self.own.numpy() * rows.dtype.type(unit)
        factors = np.zeros((number, width), rows.dtype)
        factors.reshape(-1)[:count] = self.factors.numpy()
        return panels, last, beside, factors


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
        unit = _LOG2E if kind in (SEEK, KNOWN) else 1.0  # exponentials are powers of 2
        panels, last, beside, factors = columns.columns(unit)
        number, dtype = threads.count(), panels.dtype
        starts = _starts(len(rows), number)
        groups = -(-int(np.diff(starts).max()) // POINTS)
        _, dim, lanes = panels.shape
        points = np.zeros((number, groups, dim, POINTS), dtype)
        tiles = np.zeros((number, POINTS, PITCH), dtype)
        sums = np.zeros((number, groups + 1, POINTS, -(-dim // lanes) * lanes), dtype)
        kept = np.zeros((number, groups + 1, 2, POINTS, lanes), dtype)
        numbers = np.zeros((number, 3, groups, POINTS), dtype)
        scale = rows.new_ones(len(rows)) if scale is None else scale
        work = rows.numel() * len(columns.vectors) * (2 if self.gradients else 1)
        threads.share(
            _passed, kind, self.gradients, starts, dtype.type(unit), dtype.type(unit if kind == SEEK else 1),
            rows.numpy(), self.side.own.numpy(), scale.contiguous().numpy(), panels, columns.vectors.numpy(), last,
            beside, factors, points, tiles, sums, kept, numbers, self.largest.numpy(), self.total.numpy(),
            self.weights.numpy(), self.gradient.numpy(), work=work,
        )  # fmt: skip


@cache
def _starts(rows: int, threads: int) -> Any:
    """Where blocks of rows begin, and the number of rows. The last blocks are small: no thread waits long for another.

    Their sizes change no bit: rows are computed in the same groups.
    """
    starts = [0]
    while starts[-1] < rows:
        size = min(_BLOCK, (rows - starts[-1]) // (2 * threads)) // POINTS * POINTS
        starts.append(min(rows, starts[-1] + max(size, POINTS)))
    return np.array(starts)


@kernel
def _passed(
    counters: Any, kind: int, gradients: bool, starts: Any, unit: Any, of_points: Any, x: Any, own: Any, scale: Any,
    panels: Any, vectors: Any, last: Any, beside: Any, factors: Any, points: Any, tiles: Any, sums: Any, kept: Any,
    numbers: Any, largest: Any, total: Any, weights: Any, gradient: Any,
) -> None:  # fmt: skip
    """Take blocks of rows until none is left; counters[0] is the next, counters[1] the next thread's room."""
    thread = take(counters, 1, 1)
    if thread >= len(tiles):  # more threads than when they were made: the others do the work
        return
    groups, tile, result, lanes = points[thread], tiles[thread], sums[thread], kept[thread]
    shifts, seen, settled = numbers[thread, 0], numbers[thread, 1], numbers[thread, 2, :, 0]
    part, mixed = lanes[-1], result[-1]  # of one tile
    width, wide = beside.shape[1], panels.shape[2]
    abreast = width // wide
    zero = x.dtype.type(0)
    while True:
        block = take(counters, 0, 1)
        if block >= len(starts) - 1:
            return
        start = starts[block]
        number = starts[block + 1] - start
        for b in range(number):
            for j in range(x.shape[1]):
                groups[b // POINTS, j, b % POINTS] = x[start + b, j] * of_points
            shifts[b // POINTS, b % POINTS] = zero if kind == SEEK else own[start + b] * unit
        seen[:] = zero
        settled[:] = zero
        result[:] = zero
        lanes[:] = zero
        for t in range(len(beside)):
            first, end = t * abreast, min((t + 1) * abreast, len(panels))
            at = (t - len(beside)) * width  # from the end
            rows = vectors[t * width :] if t + 2 < len(beside) else last[at + len(last) :]
            rows = rows[: (end - first) * wide]
            for g in range(-(-number // POINTS)):
                if kind == SEEK:
                    empty(part)
                    weigh(kind, groups[g], panels, first, end, beside[t], factors[t], shifts[g], tile, part)
                    if settled[g] == zero or any_above(part[1], x.dtype.type(_FAR)):
                        if _shifted(part, shifts[g], seen[g], lanes[g, 0], result[g]):
                            empty(part)
                            weigh(kind, groups[g], panels, first, end, beside[t], factors[t], shifts[g], tile, part)
                        settled[g] = x.dtype.type(1)
                        for one in seen[g]:
                            settled[g] = min(settled[g], one)
                    add(lanes[g, 0], part[0])
                else:
                    weigh(kind, groups[g], panels, first, end, beside[t], factors[t], shifts[g], tile, lanes[g])
                if gradients:
                    mix(tile, rows, wide, mixed)
                    add(result[g], mixed)
        for b in range(number):
            g, p = b // POINTS, b % POINTS
            of_weights, second = total_of(lanes[g, 0, p]), total_of(lanes[g, 1, p])
            largest[start + b] = -shifts[g, p] / unit
            total[start + b] = of_weights if kind == SEEK else second
            weights[start + b] = of_weights * scale[start + b]
            factor = scale[start + b] / of_weights if kind == SEEK else scale[start + b]
            for j in range(gradient.shape[1]):
                gradient[start + b, j] = result[g, p, j] * factor


@kernel
def _shifted(part: Any, shift: Any, seen: Any, lanes: Any, result: Any) -> bool:
    """Change the shifts of rows whose largest score is far from 0 with it; whether one has changed.

    What was found before is multiplied accordingly. ``seen`` is 1 for rows that have had a score above -∞.
    """
    changed = False
    factors = part[0, 0]  # not needed any more if one has changed
    for b in range(POINTS):
        top = part[1, b, 0]
        for score in part[1, b]:
            top = max(top, score)
        if top == -np.inf:
            continue
        if top > _FAR or (seen[b] == 0 and top < -_FAR):
            changed = True
            factors[0] = -top if seen[b] == 1 else -np.inf  # what was found before is 0 if nothing was seen
            powers(factors)
            for lane in range(lanes.shape[1]):
                lanes[b, lane] *= factors[0]
            for j in range(result.shape[1]):
                result[b, j] *= factors[0]
            shift[b] -= top
        seen[b] = 1
    return changed
