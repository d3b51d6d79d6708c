"""What the compiled steps of MuRP and MuRE share: losses of scores, who occurs where, a step on the ball.

Sums over a row are in the precision of the tables, arithmetic on single numbers is in float64.
"""

from __future__ import annotations

import math
from typing import Any

from murp.compiling import announce, kernel
from murp.kernels.elementary import exp_minus, log1p
from murp.kernels.intrinsics import combine, prefetch, product, sums

announce(__name__, "the training step")

# Arrays of so many numbers become whole vectors of any processor.
ROUND_TO = 32
_AHEAD = 8

norm = sums(product(0, 0))
norms_and_product = sums(product(0, 0), product(1, 1), product(0, 1))


@kernel
def softplus_and_sigmoid(phi: Any, soft: Any, probability: Any, scratch: Any, bits: Any, form: Any) -> None:
    """log(1 + exp(φ)) and 1/(1 + exp(-φ)) of scores (n), float64; ``scratch`` (2, n), ``bits`` its first row."""
    u, e = scratch[0], scratch[1]
    for k in range(len(phi)):
        soft[k] = abs(phi[k])
    exp_minus(soft, u, bits, e)
    log1p(e, u, bits, form, soft)
    for k in range(len(phi)):
        soft[k] += max(phi[k], 0.0)
        probability[k] = (1.0 if phi[k] >= 0 else e[k]) / (1.0 + e[k])


@kernel
def prefetch_positive(entity: Any, object_bias: Any, positive: Any, negatives: Any) -> None:
    """Begin to load the rows that a positive triple reads; they are at hand when its turn comes."""
    prefetch(entity, positive[0])
    prefetch(entity, positive[2])
    for k in range(len(negatives)):
        prefetch(entity, negatives[k])
        prefetch(object_bias, negatives[k])


@kernel
def prefetch_row(entity: Any, object_bias: Any, rows: Any, u: int, count: int) -> None:
    """Begin to load the row, of so many, that will be updated some turns after ``u``."""
    if u + _AHEAD < count:
        prefetch(entity, rows[u + _AHEAD])
        prefetch(object_bias, rows[u + _AHEAD])


@kernel
def link(positives: Any, negatives: Any, head: Any, following: Any, rows: Any) -> int:
    """Chain the occurrences of each entity; the number of distinct entities, listed in ``rows``.

    Occurrence i·(1+k)+j is candidate j of positive i, the true object first; B·(1+k)+i is subject i. A chain
    starts at ``head[entity]`` and goes on through ``following``; it runs from the last occurrence to the first.
    """
    size, false = negatives.shape
    candidates = 1 + false
    distinct = 0
    for i in range(size):
        for j in range(candidates + 1):
            if j == 0:
                entity, occurrence = positives[i, 2], i * candidates
            elif j < candidates:
                entity, occurrence = negatives[i, j - 1], i * candidates + j
            else:
                entity, occurrence = positives[i, 0], size * candidates + i
            before = head[entity]
            following[occurrence] = before
            if before < 0:
                rows[distinct] = entity
                distinct += 1
            head[entity] = occurrence
    return distinct


@kernel
def link_relations(positives: Any, head: Any, following: Any, rows: Any) -> int:
    """As :func:`link` for the relations of a batch."""
    distinct = 0
    for i in range(positives.shape[0]):
        relation = positives[i, 1]
        before = head[relation]
        following[i] = before
        if before < 0:
            rows[distinct] = relation
            distinct += 1
        head[relation] = i
    return distinct


@kernel
def ball_step(x: Any, g: Any, lr: float, c: float, limit: float, set_back: float) -> None:
    """:func:`murp.geometry.poincare.step` on one row, in place; ``g`` is the gradient."""
    real = x.dtype.type
    xx, gg, xg = norms_and_product((x, g))
    if gg == 0:
        return
    # With h = √c lr p|g|/4 all that is needed is h² and tanh(h)/h, a function of h²: for the small h of nearly every
    # row a Padé approximant, exact to rounding, which saves three roots and the tanh.
    cxx = c * xx
    p = 1.0 - cxx
    reach = 0.25 * lr * p
    hh = c * reach * reach * gg
    if hh < 0.36:
        above = 2027025.0 + hh * (270270.0 + hh * (6930.0 + hh * 36.0))
        over = above / (2027025.0 + hh * (945945.0 + hh * (51975.0 + hh * (630.0 + hh))))
    else:
        h = math.sqrt(hh)
        over = math.tanh(h) / h
    tau = reach * over
    tt = hh * over * over
    q = c * tau * xg
    s = p / ((1.0 - q) * (1.0 - q) + max(cxx * tt - q * q, 0.0))
    combine((x, g), (real(1.0 + s * tt), real(-s * tau)))
    (now,) = norm((x,))
    if c * now > limit * limit:
        back = real(set_back / math.sqrt(c * now))
        for j in range(len(x)):
            x[j] *= back
