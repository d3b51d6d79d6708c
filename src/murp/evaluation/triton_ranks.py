"""Filtered ranks on CUDA in one kernel; what :mod:`murp.evaluation.fused` asks of a kernel.

A program ranks one query. It reads its row of inner products once, tile by tile, and counts; no score is stored. The
target, the removed and the rivals are scored by the same code on tiles of the same shape, so that equal objects tie.
Only log and sqrt are used, so that the interpreter on the CPU runs the same code.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from murp.evaluation.fused import BallTerms, FlatTerms

_OPTIONS = {"TILE": 1024, "num_warps": 4}


def ball(terms: BallTerms, queries: Tensor, objects: Tensor) -> Tensor:
    """See :class:`murp.evaluation.fused.Kernel`."""
    products = terms.xv.matrix()
    ranks = torch.zeros(len(products), dtype=torch.float64, device=products.device)
    given = products, terms.vr, terms.group, terms.of_query, terms.entities, queries, objects
    _ranks[(len(products),)](*given, ranks, *products.shape, BALL=True, C=terms.c, **_OPTIONS)
    return ranks


def flat(terms: FlatTerms, queries: Tensor, objects: Tensor) -> Tensor:
    """See :class:`murp.evaluation.fused.Kernel`."""
    products = terms.yv.matrix()
    ranks = torch.zeros(len(products), dtype=torch.float64, device=products.device)
    given = products, products, queries, terms.yy, terms.entities, queries, objects
    _ranks[(len(products),)](*given, ranks, *products.shape, BALL=False, C=1.0, **_OPTIONS)
    return ranks


@triton.jit
def _scores(cells, mask, products, vr, of_query, entities, N, BALL: tl.constexpr, C: tl.constexpr):
    """The scores of the objects ``cells``; ``products``, ``vr`` and ``of_query`` point at the query's own rows."""
    xv = tl.load(products + cells, mask=mask, other=0.0)
    vv = tl.load(entities + cells, mask=mask, other=0.0)
    base = tl.load(of_query)
    if BALL:
        per_gap = tl.load(entities + N + cells, mask=mask, other=0.0)
        bias = tl.load(entities + 2 * N + cells, mask=mask, other=0.0)
        moved = tl.load(vr + cells, mask=mask, other=0.0)
        of_vv, of_xv = tl.load(of_query + 1), tl.load(of_query + 2)
        of_vr, of_both = tl.load(of_query + 3), tl.load(of_query + 4)
        z = per_gap * (base + of_vv * vv + of_xv * xv + moved * (of_vr + of_both * xv))
        z = tl.where(z < 0.0, 0.0, z)  # NaN stays NaN
        y = 2.0 * (z + tl.sqrt(z * z + z))
        # log(1 + y) without the rounding of 1 + y, which is all there is of a small y: Kahan's correction.
        u = 1.0 + y
        corrected = tl.log(u) * tl.where((y < 1e9) & (u > 1.0), y / tl.where(u > 1.0, u - 1.0, 1.0), 1.0)
        log = tl.where(u == 1.0, y, corrected)
        squared = log * log * (1.0 / C)
    else:
        bias = tl.load(entities + N + cells, mask=mask, other=0.0)
        squared = base + vv - 2.0 * xv
        squared = tl.where(squared < 0.0, 0.0, squared)
    return bias - squared


@triton.jit(do_not_specialize=["B", "N"])
def _ranks(
    products, vr, group, of_query, entities, queries, objects, ranks, B, N,
    BALL: tl.constexpr, C: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    i = tl.program_id(0).to(tl.int64)
    lanes = tl.arange(0, TILE)
    every = lanes >= 0
    nothing = tl.zeros([TILE], dtype=tl.int64)
    target, apart = tl.load(queries + i), tl.load(queries + B + i)
    first, last = tl.load(queries + 2 * B + i), tl.load(queries + 3 * B + i)
    products += i * N
    if BALL:
        of_query += 5 * i
        vr += tl.load(group + i) * N
    else:
        of_query += i
    own = tl.max(_scores(nothing + target, every, products, vr, of_query, entities, N, BALL, C), 0)

    better = tl.zeros([TILE], dtype=tl.int32)
    no_worse = tl.zeros([TILE], dtype=tl.int32)
    unordered = tl.zeros([TILE], dtype=tl.int32)
    # Not a for loop: the interpreter does not count to a number that is an argument.
    start = tl.full([], 0, dtype=tl.int64)
    while start < N:
        cells = start + lanes
        mask = cells < N
        score = _scores(cells, mask, products, vr, of_query, entities, N, BALL, C)
        better += (mask & (score > own)).to(tl.int32)
        no_worse += (mask & (score >= own)).to(tl.int32)
        unordered += (mask & (score != score)).to(tl.int32)
        start += TILE
    while first < last:
        known = first + lanes < last
        cells = tl.load(objects + first + lanes, mask=known, other=0).to(tl.int64)
        known = known & (cells != target) & (cells != apart)
        score = _scores(cells, known, products, vr, of_query, entities, N, BALL, C)
        better -= (known & (score > own)).to(tl.int32)
        no_worse -= (known & (score >= own)).to(tl.int32)
        first += TILE
    if apart >= 0:
        only = lanes == 0
        score = _scores(nothing + apart, every, products, vr, of_query, entities, N, BALL, C)
        better -= (only & (score > own)).to(tl.int32)
        no_worse -= (only & (score >= own)).to(tl.int32)

    above = tl.sum(better, 0).to(tl.float64)
    equal = tl.sum(no_worse, 0).to(tl.float64) - above - 1.0  # the target equals itself
    rank = 1.0 + above + equal / 2.0
    tl.store(ranks + i, tl.where(tl.sum(unordered, 0) > 0, float("nan"), rank))
