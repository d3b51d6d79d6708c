"""φ(s, r, ·) of one question in one compiled pass, by the scores that evaluation ranks.

One question is too little work for operations that are called one by one: calling them would take longer than they do.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from murp.compiling import allocating_kernel, announce, kernel
from murp.evaluation.numba_ranks import ball_scores, flat_scores
from murp.geometry import ball_distance
from murp.kernels.intrinsics import fma

announce(__name__, "the explorer's answers")

_TILE = 1024
query_coefficients = kernel(ball_distance.query_coefficients)


@allocating_kernel
def ball(
    subject: Any, stretch: Any, r: Any, vr: Any, columns: Any, entities: Any, c: float, set_back: float, form: Any
) -> Any:
    """Scores (N) less the subject's bias; ``columns`` (d, N) are the points of all objects v.

    ``vr`` (N) and ``entities`` (3, N) as in :class:`murp.evaluation.fused.BallTerms`.
    """
    x = _stretched(subject, stretch, c, set_back)
    base, of_vv, of_xv, of_vr, of_both, scale = query_coefficients(_product(x, x), _product(r, r), _product(x, r), c)
    of_query = (scale * np.array([base, of_vv, of_xv, of_vr, of_both])).astype(columns.dtype)
    scores = products(x, columns)
    ball_scores(scores, vr, of_query, entities, 1 / c, form)
    return scores


@allocating_kernel
def flat(subject: Any, stretch: Any, r: Any, columns: Any, entities: Any) -> Any:
    """Scores (N) less the subject's bias; ``entities`` (2, N) as in :class:`murp.evaluation.fused.FlatTerms`."""
    y = stretch * subject - r
    scores = products(y, columns)
    flat_scores(scores, columns.dtype.type(_product(y, y)), entities[0], entities[1])
    return scores


@allocating_kernel
def products(x: Any, columns: Any) -> Any:
    """⟨x,v⟩ of a point (d) and all objects, whose coordinates are ``columns`` (d, N): (N).

    Added in the order of :func:`murp.kernels.products.inner_products`, to the same bits.
    """
    result = np.zeros(columns.shape[1], columns.dtype)
    for start in range(0, len(result), _TILE):
        tile = result[start : start + _TILE]
        for j in range(len(x)):
            column = columns[j, start : start + _TILE]
            for i in range(len(tile)):
                tile[i] = fma(x[j], column[i], tile[i])
    return result


@allocating_kernel
def _stretched(x: Any, m: Any, c: float, set_back: float) -> Any:
    """diag(m) ⊗ x = exp₀(m · log₀(x)), see :func:`murp.geometry.poincare.mobius_diagonal`."""
    smallest = 1e-150  # below it both quotients are 1
    radius = max(math.sqrt(c * _product(x, x)), smallest)
    moved = m * x * x.dtype.type(math.atanh(radius) / radius)
    radius = max(math.sqrt(c * _product(moved, moved)), smallest)
    return moved * x.dtype.type(min(math.tanh(radius), set_back) / radius)


@kernel
def _product(x: Any, y: Any) -> float:
    total = 0.0
    for j in range(len(x)):
        total = fma(np.float64(x[j]), np.float64(y[j]), total)
    return total
