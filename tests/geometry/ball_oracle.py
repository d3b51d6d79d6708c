"""The paper's formulas in arbitrary precision: the judge of the functions under test.

Inputs are floats taken as exact; every formula is the textbook one, with 50 digits instead of care.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpmath
from torch import Tensor

mp = mpmath.mp.clone()
mp.dps = 50

Vector = list[Any]


def exact(x: Tensor) -> Vector:
    return [mp.mpf(value) for value in x.tolist()]


def dot(x: Vector, y: Vector) -> Any:
    return mp.fsum(a * b for a, b in zip(x, y, strict=True))


def norm(x: Vector) -> Any:
    return mp.sqrt(dot(x, x))


def scaled(factor: Any, x: Vector) -> Vector:
    return [factor * value for value in x]


def mobius_add(x: Vector, y: Vector, c: float) -> Vector:
    k = mp.mpf(c)
    xx, yy, xy = dot(x, x), dot(y, y), dot(x, y)
    denominator = 1 + 2 * k * xy + k * k * xx * yy
    of_x, of_y = (1 + 2 * k * xy + k * yy) / denominator, (1 - k * xx) / denominator
    return [of_x * a + of_y * b for a, b in zip(x, y, strict=True)]


def distance(x: Vector, y: Vector, c: float) -> Any:
    root = mp.sqrt(c)
    return 2 / root * mp.atanh(root * norm(mobius_add(scaled(-1, x), y, c)))


def exp0(v: Vector, c: float) -> Vector:
    r = mp.sqrt(c) * norm(v)
    return scaled(mp.tanh(r) / r, v) if r else v


def log0(x: Vector, c: float) -> Vector:
    r = mp.sqrt(c) * norm(x)
    return scaled(mp.atanh(r) / r, x) if r else x


def half_conformal_factor(x: Vector, c: float) -> Any:
    return 1 / (1 - mp.mpf(c) * dot(x, x))


def exp(x: Vector, v: Vector, c: float) -> Vector:
    return mobius_add(x, exp0(scaled(half_conformal_factor(x, c), v), c), c)


def log(x: Vector, y: Vector, c: float) -> Vector:
    return scaled(1 / half_conformal_factor(x, c), log0(mobius_add(scaled(-1, x), y, c), c))


def transport(x: Vector, y: Vector, v: Vector, c: float) -> Vector:
    """(λ_x/λ_y) gyr[y, -x] v, the gyration by its definition: -(y ⊕ -x) ⊕ (y ⊕ (-x ⊕ v)). It is linear in v."""
    back = scaled(-1, x)
    short = scaled(mp.mpf(10) ** -20, v)  # any length within the ball will do
    turned = mobius_add(scaled(-1, mobius_add(y, back, c)), mobius_add(y, mobius_add(back, short, c), c), c)
    factor = half_conformal_factor(x, c) / half_conformal_factor(y, c)
    return scaled(factor * mp.mpf(10) ** 20, turned)


def mobius_diagonal(m: Vector, x: Vector, c: float) -> Vector:
    return exp0([a * b for a, b in zip(m, log0(x, c), strict=True)], c)


def relative_error(value: Tensor, truth: Sequence[Any]) -> float:
    """|value - truth| / |truth|, Euclidean norms; where the truth is 0 the value has to be."""
    found = exact(value.reshape(-1))
    error = norm([a - b for a, b in zip(found, truth, strict=True)])
    return float(error / norm(list(truth))) if error else 0.0
