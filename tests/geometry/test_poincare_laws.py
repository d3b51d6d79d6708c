"""The algebra and the metric of the ball as laws, over curvatures, dimensions and points."""

from __future__ import annotations

import math

import pytest
import torch
from ball_points import balls, curvatures, dimensions, points, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.geometry import poincare

Ball = tuple[float, list[Tensor]]
law = settings(deadline=None, max_examples=at_most(60))


def close(found: Tensor, expected: Tensor, c: float, tolerance: float = 1e-9) -> None:
    """Equal within a tolerance in units of the ball's radius."""
    torch.testing.assert_close(found * math.sqrt(c), expected * math.sqrt(c), rtol=0, atol=tolerance)


def dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1)


@law
@given(balls(2))
def test_left_cancellation(ball: Ball) -> None:
    c, (x, y) = ball
    close(poincare.mobius_add(-x, poincare.mobius_add(x, y, c=c), c=c), y, c, 1e-7)


@law
@given(balls(1))
def test_zero_is_neutral_and_minus_x_inverse(ball: Ball) -> None:
    c, (x,) = ball
    zero = torch.zeros_like(x)
    close(poincare.mobius_add(zero, x, c=c), x, c, 1e-15)
    close(poincare.mobius_add(x, zero, c=c), x, c, 1e-15)
    # To the bit: -x + x is exactly 0, and so is each term above the line.
    assert torch.equal(poincare.mobius_add(-x, x, c=c), zero)


@law
@given(balls(2))
def test_log_then_exp(ball: Ball) -> None:
    c, (x, y) = ball
    close(poincare.exp(x, poincare.log(x, y, c=c), c=c), y, c, 1e-10)


@law
@given(st.data(), balls(1))
def test_exp_then_log(data: st.DataObject, ball: Ball) -> None:
    c, (x,) = ball
    half_gap = poincare.gap(x, c=c) / 2
    v = data.draw(vectors(len(x), 2.0)) * half_gap / math.sqrt(c)
    close(poincare.log(x, poincare.exp(x, v, c=c), c=c) / half_gap, v / half_gap, c, 1e-6)


@law
@given(balls(1, farthest=12.0))
def test_maps_at_the_origin(ball: Ball) -> None:
    c, (x,) = ball
    zero = torch.zeros_like(x)
    v = poincare.log0(x, c=c)
    close(poincare.exp0(v, c=c), x, c, 1e-14)
    close(poincare.exp(zero, v, c=c), x, c, 1e-14)
    close(poincare.log(zero, x, c=c), v, c, 1e-9)


@law
@given(balls(2))
def test_distance_is_the_length_of_the_logarithm(ball: Ball) -> None:
    c, (x, y) = ball
    length = poincare.conformal_factor(x, c=c).squeeze(-1) * poincare.log(x, y, c=c).norm()
    close(poincare.distance(x, y, c=c), length, c)


@law
@given(balls(2, farthest=12.0))
def test_distance_is_symmetric_and_zero_on_itself(ball: Ball) -> None:
    c, (x, y) = ball
    # To the bit: x - y is -(y - x) exactly, the product of the gaps commutes, and the code is the same for both.
    assert torch.equal(poincare.distance(x, y, c=c), poincare.distance(y, x, c=c))
    assert poincare.distance(x, x, c=c) == 0
    assert poincare.squared_distance(x, x, c=c) < 1e-300


@law
@given(balls(3))
def test_triangle_inequality(ball: Ball) -> None:
    c, (x, y, z) = ball
    direct = poincare.distance(x, z, c=c)
    detour = poincare.distance(x, y, c=c) + poincare.distance(y, z, c=c)
    assert (direct - detour) * math.sqrt(c) <= 1e-9


@law
@given(balls(3, farthest=5.0))
def test_recentring_is_an_isometry_that_moves_the_centre_to_the_origin(ball: Ball) -> None:
    c, (x, y, centre) = ball
    moved_x, moved_y = (poincare.recentre(p, centre, c=c) for p in (x, y))
    close(poincare.distance(moved_x, moved_y, c=c), poincare.distance(x, y, c=c), c, 1e-6)
    # To the bit, as (-x) ⊕ x = 0 above.
    assert torch.equal(poincare.recentre(centre, centre, c=c), torch.zeros_like(x))


@law
@given(st.data(), balls(1, farthest=5.0))
def test_stretching(data: st.DataObject, ball: Ball) -> None:
    c, (x,) = ball
    m, n = (data.draw(vectors(len(x), 1.5)) for _ in range(2))
    close(poincare.mobius_diagonal(torch.ones_like(x), x, c=c), x, c, 1e-14)
    # To the bit: 0 times a finite number is 0.
    assert torch.equal(poincare.mobius_diagonal(torch.zeros_like(x), x, c=c), torch.zeros_like(x))
    twice = poincare.mobius_diagonal(m, poincare.mobius_diagonal(n, x, c=c), c=c)
    close(poincare.mobius_diagonal(m * n, x, c=c), twice, c, 1e-10)


@law
@given(balls(3, farthest=4.0))
def test_products_carry_all_that_the_score_needs(ball: Ball) -> None:
    c, (x, v, r) = ball
    total = poincare.mobius_add(v, r, c=c)
    found = poincare.squared_distance_to_sum_from_products(
        dot(x, x), dot(v, v), dot(r, r), dot(x, v), dot(x, r), dot(v, r), c=c
    )
    # The root: d² itself is only as good as the products, 1e-16, next to d = 0.
    close(found.sqrt(), poincare.distance(x, total, c=c), c, 1e-5)
    found = poincare.squared_distance_from_products(dot(x, x), dot(v, v), dot(x, v), c=c)
    close(found.sqrt(), poincare.distance(x, v, c=c), c, 1e-5)
    found = poincare.squared_norm_of_sum_from_products(dot(v, v), dot(r, r), dot(v, r), c=c)
    close(found, dot(total, total), c, 1e-9)


@law
@given(st.data(), dimensions)
def test_a_sum_is_a_combination_with_coefficients_from_products(data: st.DataObject, d: int) -> None:
    c = 0.7
    x, y = (poincare.exp0(data.draw(vectors(d, 2.0)), c=c) for _ in range(2))
    alpha, beta, both = poincare.mobius_add_coefficients(dot(x, x), dot(y, y), dot(x, y), c=c)
    torch.testing.assert_close((alpha * x + beta * y) / both, poincare.mobius_add(x, y, c=c), rtol=1e-7, atol=1e-9)


def test_products_broadcast_over_all_entities() -> None:
    c = 0.7
    generator = torch.Generator().manual_seed(0)
    x, r, v = (poincare.exp0(torch.randn(n, 6, generator=generator).double(), c=c) for n in (3, 3, 11))
    column = (slice(None), None)
    found = poincare.squared_distance_to_sum_from_products(
        dot(x, x)[column], dot(v, v), dot(r, r)[column], x @ v.T, dot(x, r)[column], r @ v.T, c=c
    )
    expected = poincare.squared_distance(x[column], poincare.mobius_add(v, r[column], c=c), c=c)
    torch.testing.assert_close(found, expected)


@law
@given(st.data(), dimensions)
def test_the_limit_of_no_curvature_is_euclid_with_distances_doubled(data: st.DataObject, d: int) -> None:
    c = 1e-12
    x, y, m = (data.draw(vectors(d, 2.0)) for _ in range(3))
    pairs = [
        (poincare.mobius_add(x, y, c=c), x + y),
        (poincare.recentre(x, y, c=c), x - y),
        (poincare.exp0(x, c=c), x),
        (poincare.log0(x, c=c), x),
        (poincare.exp(x, y, c=c), x + y),
        (poincare.log(x, y, c=c), y - x),
        (poincare.mobius_diagonal(m, x, c=c), m * x),
        (poincare.distance(x, y, c=c), 2 * (x - y).norm()),
        (poincare.squared_distance(x, y, c=c), 4 * (x - y).square().sum()),
        (poincare.conformal_factor(x, c=c), torch.full((1,), 2.0, dtype=torch.float64)),
        (poincare.riemannian_gradient(x, y, c=c), y / 4),
        (poincare.step(x, y, 0.3, c=c), x - 0.3 * y / 4),
    ]
    for found, expected in pairs:
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-8)


@law
@given(curvatures, dimensions, st.data(), st.sampled_from([torch.float32, torch.float64]))
def test_project(c: float, d: int, data: st.DataObject, dtype: torch.dtype) -> None:
    x = data.draw(vectors(d, 3.0)).to(dtype) / math.sqrt(c)
    inside = poincare.project(x, c=c)
    eps = torch.finfo(dtype).eps
    radius = math.sqrt(c) * torch.linalg.vector_norm(x.double()).item()
    if radius < 1 - 11 * eps:
        # To the bit: the factor is exactly 1. A norm of so few entries is off by less than the 3 eps to the limit.
        assert torch.equal(inside, x)
    else:
        inside_radius = math.sqrt(c) * torch.linalg.vector_norm(inside.double()).item()
        assert 1 - 16 * eps < inside_radius < 1 - 6 * eps
        close(inside.double() / inside_radius, x.double() / radius, c, 4 * eps)
    # To the bit: a point that was set back lies 4 eps below the limit, and the norm is off by less.
    assert torch.equal(poincare.project(inside, c=c), inside)
    assert (poincare.gap(inside, c=c) > 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("c", [1e-3, 0.3, 1.0, 7.7])
@pytest.mark.parametrize("d", [1, 2, 40, 500])
def test_project_many_is_idempotent_and_leaves_the_gap_open(dtype: torch.dtype, c: float, d: int) -> None:
    directions = torch.randn(2000, d, dtype=dtype, generator=torch.Generator().manual_seed(d))
    eps = torch.finfo(dtype).eps
    # radii straddle the limit by a few eps each side, where rounding decides
    radii = 1 + eps * torch.linspace(-40, 40, 2000, dtype=torch.float64).unsqueeze(-1)
    x = (torch.nn.functional.normalize(directions.double(), dim=-1) * radii / math.sqrt(c)).to(dtype)
    once = poincare.project(x, c=c)
    # To the bit: two norms and a rescaling are off by less than the 4 eps between where points are set back and the
    # limit. The worst case of 500 squares is more, but roundings cancel: under 2 eps a norm in every order tried.
    assert torch.equal(poincare.project(once, c=c), once)
    assert (poincare.gap(once, c=c) > 0).all()
    assert (poincare.log0(once, c=c).isfinite()).all()


def test_project_keeps_nan() -> None:
    x = torch.tensor([[math.nan, 0.1], [0.1, 0.2]])
    projected = poincare.project(x, c=1.0)
    assert projected[0].isnan().any()
    # To the bit: inside the ball the factor is exactly 1.
    assert torch.equal(projected[1], x[1])


@law
@given(st.data(), curvatures, dimensions, st.sampled_from([torch.float32, torch.float64]))
def test_every_point_returned_lies_inside(data: st.DataObject, c: float, d: int, dtype: torch.dtype) -> None:
    x, y = (poincare.project(data.draw(points(d, c, 60.0)).to(dtype), c=c) for _ in range(2))
    v = data.draw(vectors(d, 1e6)).to(dtype)
    results = [
        poincare.mobius_add(x, y, c=c),
        poincare.recentre(x, y, c=c),
        poincare.exp0(v, c=c),
        poincare.exp(x, v, c=c),
        poincare.mobius_diagonal(v, x, c=c),
        poincare.step(x, v, 50.0, c=c),
    ]
    for result in results:
        assert (poincare.gap(result, c=c) > 0).all()
