"""Filtered ranks on the CPU in compiled loops; what :mod:`murp.evaluation.fused` asks of a kernel.

Threads take queries one by one. A query's row of inner products becomes scores where they lie, tile by tile; the
target's score is read from the row and the others are counted: target, rivals and the removed are the same numbers, so
equal objects tie exactly. The logarithm is spelled out below since a loop that calls one is not made of vector
instructions. Every operation is one that IEEE 754 defines to the bit, in a fixed order (:mod:`murp.compiling`): a
score depends on the numbers of its query and of its object alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import allocating_kernel, announce, kernel
from murp.kernels.elementary import FORMATS, log1p
from murp.kernels.intrinsics import fma, take

announce(__name__, "the evaluation")

_TILE = 1024
OPERATIONS = 64  # that a score takes, about


def ball(
    xv: Tensor,
    vr: Tensor,
    group: Tensor,
    of_query: Tensor,
    entities: Tensor,
    c: float,
    queries: Tensor,
    objects: Tensor,
) -> Tensor:
    """See :meth:`murp.evaluation.fused.Kernel.ball`."""
    ranks = torch.zeros(len(xv), dtype=torch.float64)
    arrays = (tensor.numpy() for tensor in (xv, vr, group, of_query, entities, queries, objects, ranks))
    threads.share(_ball, *arrays, 1 / c, FORMATS[xv.numpy().dtype], work=OPERATIONS * xv.numel())
    return ranks


def flat(yv: Tensor, yy: Tensor, entities: Tensor, queries: Tensor, objects: Tensor) -> Tensor:
    """See :meth:`murp.evaluation.fused.Kernel.flat`."""
    ranks = torch.zeros(len(yv), dtype=torch.float64)
    arrays = (tensor.numpy() for tensor in (yv, yy, entities, queries, objects, ranks))
    threads.share(_flat, *arrays, work=OPERATIONS * yv.numel())
    return ranks


@allocating_kernel
def _ball(
    counters: Any, xv: Any, vr: Any, group: Any, of_query: Any, entities: Any, queries: Any, objects: Any, ranks: Any,
    per_c: float, form: Any,
) -> None:  # fmt: skip
    while True:
        i = take(counters, 0, 1)
        if i >= xv.shape[0]:
            return
        ball_scores(xv[i], vr[group[i]], of_query[i], entities, per_c, form)
        ranks[i] = _rank(xv[i], queries[:, i], objects)


@kernel
def _flat(counters: Any, yv: Any, yy: Any, entities: Any, queries: Any, objects: Any, ranks: Any) -> None:
    while True:
        i = take(counters, 0, 1)
        if i >= yv.shape[0]:
            return
        flat_scores(yv[i], yy[i], entities)
        ranks[i] = _rank(yv[i], queries[:, i], objects)


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
def flat_scores(yv: Any, yy: Any, entities: Any) -> None:
    """A query's products with all objects (N) become their scores, where they lie."""
    zero, two = yv.dtype.type(0), yv.dtype.type(2)
    vv, bias = entities[0], entities[1]
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


@kernel
def _rank(scores: Any, query: Any, objects: Any) -> float:
    """1 + better + equal/2; NaN where a score is NaN."""
    target, apart = query[0], query[1]
    own = scores[target]
    better, no_worse, unordered = 0, 0, 0
    for j in range(len(scores)):
        better += scores[j] > own
        no_worse += scores[j] >= own
        unordered += scores[j] != scores[j]
    if unordered > 0:
        return np.nan
    for position in range(query[2], query[3]):
        o = objects[position]
        if o != target and o != apart:
            better -= scores[o] > own
            no_worse -= scores[o] >= own
    if apart >= 0:
        better -= scores[apart] > own
        no_worse -= scores[apart] >= own
    return 1 + better + (no_worse - better - 1) / 2  # the target equals itself
