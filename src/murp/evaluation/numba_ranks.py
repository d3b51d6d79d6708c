"""Filtered ranks on the CPU in compiled loops; what :mod:`murp.evaluation.fused` asks of a kernel.

Threads take blocks of queries. A block meets all objects tile by tile: inner products, which become scores where they
lie, which are counted, all within a core's own cache. Every operation is one that IEEE 754 defines to the bit, in a
fixed order (:mod:`murp.compiling`), so that a score depends on the numbers of its query and of its object alone: the
target's, found before, ties with its equals.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import allocating_kernel, announce, kernel
from murp.evaluation.fused import BallTerms, FlatTerms
from murp.kernels.elementary import FORMATS, log1p
from murp.kernels.intrinsics import fma, take
from murp.kernels.numba_products import multiply

announce(__name__, "the evaluation")

_TILE = 1024
TILE_PANELS, QUERIES = 16, 24  # a tile of scores stays in the first cache, the panels of a tile in the second
OPERATIONS = 64  # that a score takes beside its product, about


def ball(terms: BallTerms, queries: Tensor, objects: Tensor) -> Tensor:
    """See :class:`murp.evaluation.fused.Kernel`."""
    return ranks_of(Asked.on_ball(terms), queries, objects)


def flat(terms: FlatTerms, queries: Tensor, objects: Tensor) -> Tensor:
    """See :class:`murp.evaluation.fused.Kernel`."""
    return ranks_of(Asked.in_the_plane(terms), queries, objects)


class Asked(NamedTuple):
    """B queries as :func:`block_scores` takes them, arrays of NumPy."""

    points: Any  # (B, d)
    panels: Any  # (P, d, W) the entities, packed
    vr: Any  # (G, N) on the ball
    group: Any  # (B) the row of that
    of_query: Any  # (B, 5) on the ball, (B, 1) in the plane: |y|²
    entities: Any  # (3, N) or (2, N)
    per_c: float  # 1/c; 0 in the plane
    form: Any  # see murp.kernels.elementary

    @classmethod
    def on_ball(cls, terms: BallTerms) -> Asked:
        points, group = terms.xv.points.contiguous().numpy(), terms.group.contiguous().numpy()
        of_query, entities = terms.of_query.contiguous().numpy(), terms.entities.numpy()
        panels, form = terms.xv.panels(), FORMATS[points.dtype]
        return cls(points, panels, terms.vr.numpy(), group, of_query, entities, 1 / terms.c, form)

    @classmethod
    def in_the_plane(cls, terms: FlatTerms) -> Asked:
        points = terms.yv.points.contiguous().numpy()
        none, first = np.zeros((1, 1), points.dtype), np.zeros(len(points), np.int64)
        of_query, entities = terms.yy.contiguous().numpy()[:, None], terms.entities.numpy()
        return cls(points, terms.yv.panels(), none, first, of_query, entities, 0.0, FORMATS[points.dtype])

    def work(self) -> int:
        """How many operations the scores take, about."""
        return int(self.entities.shape[1] * self.points.shape[0] * (OPERATIONS + self.points.shape[1]))


def ranks_of(asked: Asked, queries: Tensor, objects: Tensor) -> Tensor:
    ranks = torch.zeros(len(asked.points), dtype=torch.float64)
    threads.share(_ranks, asked, queries.numpy(), objects.numpy(), ranks.numpy(), work=asked.work())
    return ranks


@allocating_kernel
def _ranks(counters: Any, asked: Any, queries: Any, objects: Any, ranks: Any) -> None:
    """Take blocks of queries until none is left, and rank the target of each among all objects."""
    count, width = asked.entities.shape[1], asked.panels.shape[2]
    tile = TILE_PANELS * width
    found, scratch = np.empty((QUERIES, tile), asked.points.dtype), np.empty((3, tile), asked.points.dtype)
    bits = scratch.view(asked.form.dtype)
    own = np.empty(QUERIES, asked.points.dtype)
    tally, position = np.empty((QUERIES, 3), np.int64), np.empty(QUERIES, np.int64)
    while True:
        first = take(counters, 0, QUERIES)
        if first >= len(ranks):
            return
        last = min(first + QUERIES, len(ranks))
        for q in range(last - first):
            target = queries[0, first + q]
            panel = target // width
            block_scores(asked, first + q, first + q + 1, panel, panel + 1, found, scratch, bits)
            own[q] = found[0, target - panel * width]
            tally[q, 0], tally[q, 1], tally[q, 2] = 0, 0, 0
            position[q] = queries[2, first + q]
        for panel in range(0, len(asked.panels), TILE_PANELS):
            start = panel * width
            stop = min(start + tile, count)
            block_scores(asked, first, last, panel, min(panel + TILE_PANELS, len(asked.panels)), found, scratch, bits)
            for q in range(last - first):
                _count(found[q, : stop - start], own[q], tally[q])
                position[q] = _discount(
                    found[q], own[q], tally[q], queries[:, first + q], objects, position[q], start, stop
                )
        for q in range(last - first):
            better, no_worse = tally[q, 0], tally[q, 1]
            rank = 1 + better + (no_worse - better - 1) / 2  # the target equals itself
            ranks[first + q] = np.nan if tally[q, 2] > 0 else rank


@kernel
def block_scores(asked: Any, first: int, last: int, panel: int, end: int, found: Any, scratch: Any, bits: Any) -> None:
    """Scores of the queries first … last - 1 with the objects of some panels, into the rows of ``found``."""
    multiply(asked.points, first, last, asked.panels, panel, end, found)
    width = asked.panels.shape[2]
    start, stop = panel * width, min(end * width, asked.entities.shape[1])
    vv, second = asked.entities[0, start:stop], asked.entities[1, start:stop]
    count = stop - start
    for q in range(last - first):
        row, of_query = found[q, :count], asked.of_query[first + q]
        if asked.per_c > 0:
            vr, bias = asked.vr[asked.group[first + q], start:stop], asked.entities[2, start:stop]
            y, u, log = scratch[0, :count], scratch[1, :count], scratch[2, :count]
            _exponentials_less_one(row, vr, of_query, vv, second, y)
            log1p(y, u, bits[1, :count], asked.form, log)
            _scores_of_logarithms(log, bias, row.dtype.type(asked.per_c), row)
        else:
            flat_scores(row, of_query[0], vv, second)


@kernel
def _count(scores: Any, own: Any, tally: Any) -> None:
    """Add how many scores are better than ``own``, no worse, and NaN."""
    better, no_worse, unordered = 0, 0, 0
    for j in range(len(scores)):
        better += scores[j] > own
        no_worse += scores[j] >= own
        unordered += scores[j] != scores[j]
    tally[0] += better
    tally[1] += no_worse
    tally[2] += unordered


@kernel
def _discount(scores: Any, own: Any, tally: Any, query: Any, objects: Any, position: int, start: int, stop: int) -> int:
    """Take back what is no candidate among the objects start … stop - 1; where the known objects go on."""
    target, apart = query[0], query[1]
    while position < query[3] and objects[position] < stop:
        o = objects[position]
        if o != target and o != apart:
            tally[0] -= scores[o - start] > own
            tally[1] -= scores[o - start] >= own
        position += 1
    if start <= apart < stop:
        tally[0] -= scores[apart - start] > own
        tally[1] -= scores[apart - start] >= own
    return position


@allocating_kernel
def ball_scores(xv: Any, vr: Any, of_query: Any, entities: Any, per_c: float, form: Any) -> None:
    """A query's products with all objects (N) become their scores, where they lie."""
    y, u, log = np.empty(_TILE, xv.dtype), np.empty(_TILE, xv.dtype), np.empty(_TILE, xv.dtype)
    bits = u.view(form.dtype)
    for start in range(0, len(xv), _TILE):
        cells = slice(start, start + _TILE)
        row = xv[cells]
        _exponentials_less_one(row, vr[cells], of_query, entities[0, cells], entities[1, cells], y)
        count = len(row)
        log1p(y[:count], u[:count], bits[:count], form, log[:count])
        _scores_of_logarithms(log, entities[2, cells], xv.dtype.type(per_c), row)


@kernel
def flat_scores(yv: Any, yy: Any, vv: Any, bias: Any) -> None:
    """A query's products with some objects become their scores, where they lie."""
    zero, two = yv.dtype.type(0), yv.dtype.type(2)
    for j in range(len(yv)):
        d = fma(-two, yv[j], yy + vv[j])
        yv[j] = bias[j] - (zero if d < zero else d)  # NaN stays NaN


@kernel
def _exponentials_less_one(xv: Any, vr: Any, of_query: Any, vv: Any, per_gap: Any, y: Any) -> None:
    """y = exp(√c d) - 1 = 2(z + √(z² + z)) with z = sinh²(√c d/2)."""
    zero, two = xv.dtype.type(0), xv.dtype.type(2)
    base, of_vv, of_xv, of_vr, of_both = of_query[0], of_query[1], of_query[2], of_query[3], of_query[4]
    for j in range(len(xv)):
        bracket = fma(of_xv, xv[j], fma(of_vv, vv[j], base))
        z = per_gap[j] * fma(vr[j], fma(of_both, xv[j], of_vr), bracket)
        z = zero if z < zero else z  # NaN stays NaN
        y[j] = two * (z + np.sqrt(fma(z, z, z)))


@kernel
def _scores_of_logarithms(log: Any, bias: Any, per_c: Any, scores: Any) -> None:
    """bias - log²/c."""
    for j in range(len(scores)):
        scores[j] = fma(-(per_c * log[j]), log[j], bias[j])
