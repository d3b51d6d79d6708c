"""Training steps of Poincaré and Lorentz embeddings in compiled loops; see :mod:`murp.engines.hierarchy_engine`.

With z = sinh²(d/2) and g = ∂L/∂d the gradient of the loss by a candidate v of the subject x is

    ∂L/∂v = a (v - x) + b v,        a subject's is the sum of a (x - v) + b' x over its candidates;

    ball         z = |x - v|² / (αβ),         a = 2g / (αβ √(z² + z)),   b = 2gz / (β √(z² + z)),   b' has α for β,
    hyperboloid  z = (|x' - v'|² - (x₀ - v₀)²)/4,   a = g / (2√(z² + z)),   b = b' = gz / √(z² + z),

where α = 1 - |x|², β = 1 - |v|². Of the ball it is Euclid's gradient, of the hyperboloid the Riemannian one. Only a
and b are stored. A step has the three parts of :mod:`murp.engines.numba_steps`, and the result does not depend on the
number of threads.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from murp.compiling import announce, kernel
from murp.engines.numba_math import ball_step, link
from murp.kernels.barrier import FIRST, SECOND, SHARED, arrive, begin, release
from murp.kernels.elementary import exp_minus, log1p
from murp.kernels.intrinsics import (
    add_difference,
    combine,
    fill,
    prefetch,
    product,
    read,
    squared_difference,
    sums,
    take,
    write,
)

announce(__name__, "the training step")

_POSITIVES, _ROWS, _AHEAD = 4, 64, 8  # as in numba_steps and numba_math
_STEP = np.uint64(0x9E3779B97F4A7C15)
_AGAIN = 64  # times that a related entity is drawn again
_TINY = 1e-25  # below this ∂L/∂d moves nothing, and its products are subnormal numbers, which are slow

difference_and_norm = sums(squared_difference(0, 1), product(1, 1))
norm = sums(product(0, 0))


@kernel
def _mixed(x: Any) -> Any:
    """Sixty-four random bits from a counter (splitmix64: Steele, Lea, Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _below(bits: Any, number: int) -> Any:
    """A number from 0 … number - 1 from the upper half of random bits; number is below 2³²."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(number)) >> np.uint64(32))


@kernel
def _draw(place: int, subject: int, drawing: Any, entities: int, out: Any) -> None:
    """Entities that are not related to the subject, into ``out`` (k): a function of the seed and the place."""
    seed, _, related, starts, below, below_starts = drawing
    state = _mixed(np.uint64(seed) + np.uint64(place) * _STEP)
    first, last = starts[subject], starts[subject + 1]
    for k in range(len(out)):
        found = 0
        for _ in range(_AGAIN):
            state += _STEP
            bits = _mixed(state)
            if len(below) == 0 or bits & np.uint64(1):
                found = _below(bits, entities)
            else:
                above = related[first + _below(bits, last - first)]
                begin = below_starts[above]
                found = below[begin + _below(bits << np.uint64(32), below_starts[above + 1] - begin)]
                state += _STEP
                bits = _mixed(state)
                if bits & np.uint64(1):
                    found = related[starts[found] + _below(bits, starts[found + 1] - starts[found])]
            new = True
            for j in range(first, last):
                if related[j] == found:
                    new = False
            if new:
                break
        out[k] = found


@kernel
def _softmax(dist: Any, scratch: Any, bits: Any, candidates: int, g: Any) -> Any:
    """log Σ_k exp(d₀ - d_k), see :class:`murp.objectives.softmax.Softmax`, and into g its derivatives by d_k."""
    least = dist[0]
    for k in range(1, candidates):
        least = min(least, dist[k])
    for k in range(len(dist)):
        dist[k] = max(dist[k] - least, 0.0)
    exp_minus(dist, scratch, bits, g)
    total = 0.0
    for k in range(candidates):
        total += g[k]
    for k in range(candidates):
        g[k] = -g[k] / total
    g[0] += 1.0
    return dist[0] + math.log(total)


@kernel
def _rank(z: Any, dist: Any, scratch: Any, bits: Any, candidates: int, softness: float, g: Any) -> Any:
    """Σ_k σ((d₀ - d_k)/τ), see :class:`murp.objectives.rank.Rank`, and into g its derivatives by d_k.

    With e = exp(-|d₀ - d_k|/τ) the sigmoid is 1/(1 + e) or e/(1 + e), and its derivative e/(1 + e)² over τ.
    """
    own = dist[0]
    for k in range(len(dist)):
        dist[k] = abs(own - dist[k]) / softness
    exp_minus(dist, scratch, bits, g)
    total, sum_of_g = 0.0, 0.0
    for k in range(1, candidates):
        total += (1.0 if z[k] < z[0] else g[k]) / (1.0 + g[k])
        g[k] = -g[k] / ((1.0 + g[k]) * (1.0 + g[k]) * softness)
        sum_of_g += g[k]
    g[0] = -sum_of_g
    return total


@kernel
def _positive(
    i: int, thread: int, subject: int, true: int, table: Any, ball: bool, softness: float, space: Any, size: int
) -> None:
    """Distances of the candidates of positive i, its loss, and the coefficients of all its gradients."""
    false = space.false[i]
    candidates = 1 + len(false)
    x = space.subjects[i]
    source = table[subject]
    for j in range(len(x)):
        x[j] = source[j]
    work, scratch, bits = space.work[thread], space.scratch[thread], space.bits[thread, 0]
    z, beta, root, dist, p = work[0], work[1], work[2], work[3], work[4]
    alpha = 1.0
    if ball:
        (xx,) = norm((x,))
        alpha = 1.0 - xx
    for k in range(candidates):
        v = table[true if k == 0 else false[k - 1]]
        ww, vv = difference_and_norm((x, v))
        if ball:
            z[k], beta[k] = ww, 1.0 - vv
        else:
            z[k], beta[k] = ww - 2.0 * (x[0] - v[0]) * (x[0] - v[0]), 4.0
    for k in range(len(z)):
        z[k] = max(z[k] / (alpha * beta[k]), 0.0)
        root[k] = math.sqrt(z[k] * z[k] + z[k])
        p[k] = 2.0 * (z[k] + root[k])
    log1p(p, scratch[0], bits, space.form, dist)
    if softness > 0.0:
        space.losses[i] = _rank(z, dist, scratch[0], bits, candidates, softness, p) / size
    else:
        space.losses[i] = _softmax(dist, scratch[0], bits, candidates, p) / size
    weight = 1.0 / size
    a, b, gradient = space.of_difference[i], space.of_self[i], space.gradients[i]
    fill(gradient, 0.0)
    own = 0.0
    for k in range(candidates):
        g = p[k] * weight
        if abs(g) < _TINY or root[k] == 0.0:
            a[k], b[k] = 0.0, 0.0
            continue
        slope = g / root[k]
        if ball:
            a[k] = 2.0 * slope / (alpha * beta[k])
            b[k] = 2.0 * slope * z[k] / beta[k]
            own += 2.0 * slope * z[k] / alpha
        else:
            a[k] = 0.5 * slope
            b[k] = slope * z[k]
            own += slope * z[k]
        add_difference((gradient, x, table[true if k == 0 else false[k - 1]]), a[k])
    combine((gradient, x), (1.0, own))


@kernel
def _squared_length(x: Any, g: Any, ball: bool) -> Any:
    """|g|² of the Riemannian gradient in the metric at x; on the ball, where g is Euclid's, it is (1 - |x|²)²|g|²/4.

    On the hyperboloid it is the sum of squares across the direction to the origin, and of those along it over x₀².
    """
    (gg,) = norm((g,))
    (xx,) = norm((x,))
    if ball:
        return 0.25 * (1.0 - xx) * (1.0 - xx) * gg
    xx, xg = 0.0, 0.0
    for j in range(1, len(x)):
        xx += x[j] * x[j]
        xg += x[j] * g[j]
    share = xg / xx if xx > 0.0 else 0.0
    rr = share * share * xx / (1.0 + xx)
    for j in range(1, len(x)):
        across = g[j] - share * x[j]
        rr += across * across
    return rr


@kernel
def _hyperboloid_step(x: Any, g: Any, rr: float, lr: float, limit: float) -> None:
    """:func:`murp.geometry.hyperboloid.exp` of -lr g on one row, in place; g is tangent at x, its squared length rr."""
    r = lr * math.sqrt(rr)
    cut = min(r, math.log(2.0 * limit))
    if cut < 1e-4:
        cosh, sinh = 1.0 + 0.5 * cut * cut, lr * (1.0 + cut * cut / 6.0)
    else:
        cosh, sinh = math.cosh(cut), lr * math.sinh(cut) / r
    now = 0.0
    for j in range(1, len(x)):
        x[j] = cosh * x[j] - sinh * g[j]
        now += x[j] * x[j]
    if now > limit * limit:
        back = limit * 8.0 / 12.0 / math.sqrt(now)
        for j in range(1, len(x)):
            x[j] *= back
        now *= back * back
    x[0] = math.sqrt(1.0 + now)


@kernel
def _rows(
    first: int, last: int, distinct: int, thread: int, table: Any, squares: Any, numbers: Any, space: Any
) -> None:
    """Sum the gradients of the touched entities first … last - 1 over their chains and move them."""
    rate, ball, limit, set_back, eps, _ = numbers
    candidates = space.of_self.shape[1]
    subjects, per_candidate = len(space.losses) * candidates, 1.0 / candidates
    g = space.row[thread]
    for u in range(first, last):
        if u + _AHEAD < distinct:
            prefetch(table, space.rows[u + _AHEAD])
        row = space.rows[u]
        v = table[row]
        fill(g, 0.0)
        own, at = 0.0, space.head[row]
        while at >= 0:
            if at >= subjects:
                combine((g, space.gradients[at - subjects]), (1.0, 1.0))
            else:
                i = int((at + 0.5) * per_candidate)
                k = at - i * candidates
                own += space.of_self[i, k]
                if space.of_difference[i, k] != 0.0:
                    add_difference((g, v, space.subjects[i]), space.of_difference[i, k])
            at = space.following[at]
        combine((g, v), (1.0, own))
        lr, length = rate, 0.0
        if ball == 0 or len(squares) > 0:
            length = _squared_length(v, g, ball > 0)
        if len(squares) > 0:
            squares[row, 0] += length
            lr /= math.sqrt(squares[row, 0]) + eps
        if ball > 0:
            ball_step(v, g, lr, 1.0, limit, set_back)
        elif length > 0.0:
            _hyperboloid_step(v, g, length, lr, limit)
        space.head[row] = -1


@kernel
def steps(
    counters: Any,
    thread: int,
    positives: Any,
    given: Any,
    drawing: Any,
    table: Any,
    squares: Any,
    numbers: Any,
    space: Any,
    total: Any,
) -> None:
    """One thread's part of S steps on positives (S, B, 3); adds the mean losses to ``total`` (1).

    ``given``: negatives (S, B, k), or (0, 0, 0) where they are drawn. ``drawing``: seed, number of the first step,
    entities that each is related to and where they begin, those related to each and where they begin, or none: see
    :mod:`murp.negatives.unrelated`. ``table`` (N, w): rows filled up with 0 to whole vectors.
    ``squares`` (N, 1): Adagrad's sums; (0, 1) for SGD. ``numbers``: learning rate, 1 for the ball or 0, the limit
    radius, the ball's set-back radius, Adagrad's ε, the softness of the objective rank or 0 for softmax.
    """
    begin(counters)
    size = positives.shape[1]
    ball = numbers[1] > 0
    for step in range(len(positives)):
        while True:
            first = take(counters, FIRST, _POSITIVES)
            if first >= size:
                break
            last = min(first + _POSITIVES, size)
            for i in range(first, last):
                if len(given) > 0:
                    for k in range(space.false.shape[1]):
                        space.false[i, k] = given[step, i, k]
                else:
                    place = (drawing[1] + step) * size + i
                    _draw(place, positives[step, i, 0], drawing, len(table), space.false[i])
                prefetch(table, positives[step, i, 0])
                prefetch(table, positives[step, i, 2])
                for k in range(space.false.shape[1]):
                    prefetch(table, space.false[i, k])
            for i in range(first, last):
                _positive(i, thread, positives[step, i, 0], positives[step, i, 2], table, ball, numbers[5], space, size)
        if arrive(counters):
            write(counters, SHARED, link(positives[step], space.false, space.head, space.following, space.rows))
            write(counters, SECOND, 0)
            release(counters)
        distinct = read(counters, SHARED)
        while True:
            first = take(counters, SECOND, _ROWS)
            if first >= distinct:
                break
            _rows(first, min(first + _ROWS, distinct), distinct, thread, table, squares, numbers, space)
        if arrive(counters):
            for i in range(size):
                total[0] += space.losses[i]
            write(counters, FIRST, 0)
            release(counters)
