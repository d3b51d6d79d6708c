"""The hyperboloid: its own laws, agreement with the ball, and arithmetic with 50 digits as the judge."""

from __future__ import annotations

import math
from typing import Any

import ball_oracle as oracle
import pytest
import torch
from ball_oracle import Vector, mp
from ball_points import CURVATURES, at_distance, balls, random_points
from hypothesis import given
from torch import Tensor

from murp.geometry import Hyperboloid, hyperboloid, poincare

every_ball = pytest.mark.parametrize("c", CURVATURES)
every_dimension = pytest.mark.parametrize("d", [1, 2, 40])


def lifted(x: Vector, c: float) -> Vector:
    """The textbook's map from the ball."""
    k = mp.mpf(c)
    square = k * oracle.dot(x, x)
    return [(1 + square) / mp.sqrt(k) / (1 - square), *oracle.scaled(2 / (1 - square), x)]


def lorentz_inner(x: Vector, y: Vector) -> Vector:
    return oracle.dot(x[1:], y[1:]) - x[0] * y[0]


def points(d: int, c: float) -> list[Tensor]:
    small = [at_distance(torch.ones(d, dtype=torch.float64), s, c) for s in (0.0, 1e-12, 1e-3)]
    return [*random_points(8, d, c, 16.0, torch.float64, seed=d), *small]


@every_ball
@every_dimension
def test_from_ball_and_back_against_exact_arithmetic(c: float, d: int) -> None:
    """The bar grows as the gap to the rim shrinks: so much of the ball's own rounding is magnified."""
    for x in points(d, c):
        magnified = 1e-15 / float(poincare.gap(x, c=c))
        up = hyperboloid.from_ball(x, c=c)
        assert oracle.relative_error(up, lifted(oracle.exact(x), c)) < 8 * magnified
        assert oracle.relative_error(hyperboloid.to_ball(up, c=c), oracle.exact(x)) < 1e-14


@every_ball
@every_dimension
def test_tangent_against_exact_arithmetic(c: float, d: int) -> None:
    for x in points(d, c):
        v = poincare.log0(x, c=c)
        truth = lifted(oracle.exp0(oracle.exact(v), c), c)
        up = hyperboloid.from_tangent(v, c=c)
        assert oracle.relative_error(up, truth) < 1e-13
        assert oracle.relative_error(hyperboloid.to_tangent(up, c=c), oracle.exact(v)) < 1e-14


@given(balls(2))
def test_the_hyperboloid_is_where_it_should_be_and_distances_are_kept(ball: tuple[float, list[Tensor]]) -> None:
    c, (x, y) = ball
    up, other = (hyperboloid.from_ball(p, c=c) for p in (x, y))
    for p in (up, other):
        assert float(c * hyperboloid.inner(p, p)) == pytest.approx(-1, abs=1e-15 * float(c * p[0] ** 2) * 8)
    truth = oracle.distance(oracle.exact(x), oracle.exact(y), c)
    # ⟨x-y,x-y⟩ subtracts numbers of the size of x₀²: that bounds what is left of a small distance.
    lost = 1e-15 * c * float(up[0] ** 2 + other[0] ** 2) * 8
    found = float(hyperboloid.distance(up, other, c=c))
    scaled = math.sqrt(c)
    assert 4 * math.sinh(scaled * found / 2) ** 2 == pytest.approx(
        float(4 * mp.sinh(mp.sqrt(c) * truth / 2) ** 2), rel=1e-9, abs=lost
    )


@given(balls(3, farthest=6.0))
def test_the_largest_inner_product_is_the_nearest(ball: tuple[float, list[Tensor]]) -> None:
    c, (x, y, z) = ball
    near, far = sorted((y, z), key=lambda p: float(poincare.distance(x, p, c=c)))
    query = hyperboloid.from_ball(x, c=c)
    query[0] = -query[0]
    products = [float(query @ hyperboloid.from_ball(p, c=c)) for p in (near, far)]
    assert c * products[0] >= c * products[1] - 1e-14 * c * float(query[0] ** 2 + 1) * 1e3


@every_ball
def test_points_of_float32_come_back_bit_for_bit(c: float) -> None:
    """Through float64 and back: what an export in other coordinates is worth.

    At this distance roundings of float64 (10⁻¹⁶) grow by e¹² at most, to 10⁻¹¹: far below half a step of float32.
    """
    x = random_points(500, 7, c, 12.0, torch.float32, seed=1)
    there = x.double()
    for back in (
        hyperboloid.to_ball(hyperboloid.from_ball(there, c=c), c=c),
        poincare.exp0(poincare.log0(there, c=c), c=c),
    ):
        assert torch.equal(back.float(), x)


# dtype, farthest scaled distance from the origin, allowed error. Components have the size of e^16 and of e^8 there, so
# that squares of time components differ by less than their rounding.
FAR = [(torch.float64, 16.0, 1e-8), (torch.float32, 8.0, 3e-3)]
far = pytest.mark.parametrize(("dtype", "farthest", "bar"), FAR, ids=["float64", "float32"])


class Exact:
    """The textbook's formulas. A point is its spatial part, and a tangent vector too: both fix the time component."""

    def __init__(self, c: float) -> None:
        self.c = mp.mpf(c)

    def point(self, x: Tensor) -> Vector:
        space = oracle.exact(x[1:])
        return [mp.sqrt(1 / self.c + oracle.dot(space, space)), *space]

    def tangent(self, x: Vector, v: Tensor) -> Vector:
        space = oracle.exact(v[1:])
        return [oracle.dot(x[1:], space) / x[0], *space]

    def angle(self, x: Vector, y: Vector) -> Any:
        return mp.acosh(-self.c * lorentz_inner(x, y))

    def length(self, v: Vector) -> Any:
        return mp.sqrt(max(lorentz_inner(v, v), 0))

    def exp(self, x: Vector, v: Vector) -> Vector:
        r = mp.sqrt(self.c) * self.length(v)
        return [mp.cosh(r) * a + mp.sinh(r) / r * b for a, b in zip(x, v, strict=True)]

    def log(self, x: Vector, y: Vector) -> Vector:
        angle = self.angle(x, y)
        return [angle / mp.sinh(angle) * (b - mp.cosh(angle) * a) for a, b in zip(x, y, strict=True)]

    def transport(self, x: Vector, y: Vector, v: Vector) -> Vector:
        factor = self.c * lorentz_inner(y, v) / (1 - self.c * lorentz_inner(x, y))
        return [w + factor * (a + b) for a, b, w in zip(x, y, v, strict=True)]


def far_pairs(d: int, c: float, farthest: float, dtype: torch.dtype) -> list[tuple[Tensor, Tensor]]:
    """Points anywhere, neighbours far out, on one ray, opposite, and with the origin."""
    drawn = [
        hyperboloid.project(hyperboloid.from_ball(random_points(6, d, c, farthest, torch.float64, seed), c=c), c=c)
        for seed in (d, d + 50)
    ]
    xs, ys = (points.to(dtype) for points in drawn)
    space = Hyperboloid(c)
    beside = space.retract(xs, space.project_tangent(xs, 1e-2 * ys / ys.norm(dim=-1, keepdim=True)))
    back = space.project(xs * torch.linspace(0.2, -1, len(xs), dtype=dtype)[:, None])
    centre = space.origin(d + 1, dtype).expand_as(xs)
    others = (ys, beside, back, centre)
    return [(space.project(x), space.project(y)) for other in others for x, y in zip(xs, other, strict=True)]


@far
@every_ball
@every_dimension
def test_distances_far_out_against_exact_arithmetic(
    dtype: torch.dtype, farthest: float, bar: float, c: float, d: int
) -> None:
    judge = Exact(c)
    for x, y in far_pairs(d, c, farthest, dtype):
        truth = judge.angle(judge.point(x), judge.point(y)) / mp.sqrt(c)
        assert oracle.relative_error(hyperboloid.distance(x, y, c=c), [truth]) < bar
        assert oracle.relative_error(hyperboloid.distance(y, x, c=c), [truth]) < bar
        assert oracle.relative_error(hyperboloid.squared_distance(x, y, c=c), [truth**2]) < bar


@far
@every_ball
@every_dimension
def test_lengths_far_out_against_exact_arithmetic(
    dtype: torch.dtype, farthest: float, bar: float, c: float, d: int
) -> None:
    """Of vectors along the ray to the origin, where time and space nearly cancel, and of others."""
    judge = Exact(c)
    for x, y in far_pairs(d, c, farthest, dtype):
        for v in (x, y, x + y):
            place = judge.point(x)
            truth = lorentz_inner(*[judge.tangent(place, v)] * 2)
            assert oracle.relative_error(hyperboloid.metric(x, v, v, c=c), [truth]) < bar


@every_ball
@every_dimension
def test_maps_against_exact_arithmetic(c: float, d: int) -> None:
    """exp, log and transport up to the distance 6, judged by the length of the error in the metric there."""
    judge = Exact(c)
    for x, y in far_pairs(d, c, 6.0, torch.float64):
        ex, ey = judge.point(x), judge.point(y)
        if judge.angle(ex, ey) < 1e-9:
            continue
        log = hyperboloid.log(x, y, c=c)
        v = judge.tangent(ex, log)
        assert oracle.relative_error(log, judge.log(ex, ey)) < 1e-9
        assert oracle.relative_error(hyperboloid.exp(x, log, c=c), judge.exp(ex, v)) < 1e-9
        turned = hyperboloid.transport(x, y, log, c=c)
        error = [a - b for a, b in zip(judge.tangent(ey, turned), judge.transport(ex, ey, v), strict=True)]
        assert judge.length(error) < 1e-9 * judge.length(v)
