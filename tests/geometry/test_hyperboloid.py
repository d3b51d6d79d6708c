"""The hyperboloid: its own laws, agreement with the ball, and arithmetic with 50 digits as the judge."""

from __future__ import annotations

import math

import ball_oracle as oracle
import pytest
import torch
from ball_oracle import Vector, mp
from ball_points import CURVATURES, at_distance, balls, random_points
from hypothesis import given
from torch import Tensor

from murp.geometry import hyperboloid, poincare

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
