"""What the compiled steps of MuRP and MuRE are made of: the loss of a score, who occurs where, a step on the ball.

Sums over the dimension may be reassociated into vector instructions (``fastmath`` without the flags that
assume finite numbers); arithmetic on single numbers is in float64.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

FLAGS = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=FLAGS, inline="always")
def softplus_and_sigmoid(phi: float) -> tuple[float, float]:
    e = math.exp(-abs(phi))
    return max(phi, 0.0) + math.log1p(e), (1.0 if phi >= 0 else e) / (1.0 + e)


@njit(cache=True, fastmath=FLAGS, inline="always")
def fetch(entity: Any, object_bias: Any, true: int, false: Any) -> float:
    """Read a number of every 64 bytes of the candidates' rows; their sum, which is of no use.

    These loads do not wait for each other, as the arithmetic on the rows makes them; after it the rows are at hand.
    The sum has to be written somewhere, or the compiler leaves the loads out.
    """
    touch: float = entity.dtype.type(0)
    for k in range(1 + false.shape[0]):
        o = true if k == 0 else false[k - 1]
        touch += object_bias[o]
        for j in range(0, entity.shape[1], 16):
            touch += entity[o, j]
    return touch


@njit(cache=True, fastmath=FLAGS)
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


@njit(cache=True)
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


@njit(cache=True, fastmath=FLAGS, inline="always")
def ball_step(x: Any, g: Any, lr: float, c: float, limit: float, set_back: float) -> None:
    """:func:`murp.geometry.poincare.step` on one row, in place; ``g`` is the gradient."""
    zero = x.dtype.type(0)
    xx, gg, xg = zero, zero, zero
    for j in range(x.shape[0]):
        xx += x[j] * x[j]
        gg += g[j] * g[j]
        xg += x[j] * g[j]
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
    keep, add = x.dtype.type(1.0 + s * tt), x.dtype.type(-s * tau)
    norm = zero
    for j in range(x.shape[0]):
        moved = keep * x[j] + add * g[j]
        x[j] = moved
        norm += moved * moved
    if c * norm > limit * limit:
        back = x.dtype.type(set_back / math.sqrt(c * norm))
        for j in range(x.shape[0]):
            x[j] *= back
