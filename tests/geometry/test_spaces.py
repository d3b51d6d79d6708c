"""The interface: both spaces obey the same laws through it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import Euclidean, MobiusGeometry, PoincareBall

SPACES: list[MobiusGeometry] = [PoincareBall(), PoincareBall(c=0.4), Euclidean()]
every_space = pytest.mark.parametrize("space", SPACES, ids=str)


def some_points(space: MobiusGeometry, seed: int) -> Tensor:
    return space.exp0(0.3 * torch.randn(6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))


def dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1)


@every_space
def test_laws_of_a_space(space: MobiusGeometry) -> None:
    x, y, centre = (some_points(space, seed) for seed in (1, 2, 3))
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    equal = torch.testing.assert_close
    equal(space.add(-x, space.add(x, y)), y)
    equal(space.exp(x, space.log(x, y)), y)
    equal(space.exp(zero, x), space.exp0(x))
    equal(space.log(zero, x), space.log0(x))
    equal(space.stretch(one, x), x)
    equal(space.stretch(2 * one, x), space.add(x, x))
    equal(space.recentre(centre, centre), zero)
    equal(space.distance(space.recentre(x, centre), space.recentre(y, centre)), space.distance(x, y))
    equal(space.squared_distance(x, y), space.distance(x, y).square())
    equal(space.distance(x, y), (space.conformal_factor(x) * space.log(x, y)).norm(dim=-1))
    # To the bit: well inside the ball the factor is exactly 1.
    assert torch.equal(space.project(x), x)


@every_space
def test_distances_are_symmetric_to_the_bit(space: MobiusGeometry) -> None:
    """True on every processor: x - y is -(y - x) exactly, sums and products of two numbers commute, and an element is
    computed by the same code in both, since it has the same place in both."""
    x, y = some_points(space, 13), some_points(space, 14)
    assert torch.equal(space.distance(x, y), space.distance(y, x))
    assert torch.equal(space.squared_distance(x, y), space.squared_distance(y, x))
    xx, yy, xy = dot(x, x), dot(y, y), dot(x, y)
    there, back = ((xx, yy, xy), (yy, xx, xy))
    assert torch.equal(space.squared_distance_from_products(*there), space.squared_distance_from_products(*back))


@every_space
def test_products_agree_with_vectors(space: MobiusGeometry) -> None:
    x, v, r = (some_points(space, seed) for seed in (4, 5, 6))
    total = space.add(v, r)
    equal = torch.testing.assert_close
    found = space.squared_distance_from_products(dot(x, x), dot(v, v), dot(x, v))
    equal(found, space.squared_distance(x, v))
    found = space.squared_distance_to_sum_from_products(
        dot(x, x), dot(v, v), dot(r, r), dot(x, v), dot(x, r), dot(v, r)
    )
    equal(found, space.squared_distance(x, total))
    equal(space.exp0_scale(dot(x, x)).unsqueeze(-1) * x, space.exp0(x))
    equal(space.squared_norm_of_sum_from_products(dot(v, v), dot(r, r), dot(v, r)), dot(total, total))


@every_space
def test_step_is_the_composition(space: MobiusGeometry) -> None:
    x, gradient = some_points(space, 7), some_points(space, 8)
    velocity = -0.7 * space.riemannian_gradient(x, gradient)
    torch.testing.assert_close(space.step(x, gradient, 0.7), space.project(space.exp(x, velocity)))
    # To the bit: tanh(0) is 0, and x is multiplied by 1 and has 0 added.
    assert torch.equal(space.step(x, torch.zeros_like(x), 0.7), x)


@every_space
def test_riemannian_gradient_is_the_gradient_of_the_metric(space: MobiusGeometry) -> None:
    x, y = some_points(space, 9).requires_grad_(), some_points(space, 10)
    (gradient,) = torch.autograd.grad(space.squared_distance(x, y).sum() / 2, x)
    found = space.riemannian_gradient(x.detach(), gradient)
    torch.testing.assert_close(found, -space.log(x.detach(), y))


def test_distances_of_products_that_rounding_made_negative_are_zero() -> None:
    just_below = torch.tensor(0.25 - 1e-9, dtype=torch.float64)
    quarter = torch.tensor(0.25, dtype=torch.float64)
    for space in SPACES:
        found = space.squared_distance_from_products(just_below, just_below, quarter)
        assert 0 <= found < 1e-300
        to_sum = (quarter, just_below, quarter * 0, quarter, quarter * 0, quarter * 0)
        assert 0 <= space.squared_distance_to_sum_from_products(*to_sum) < 1e-300
        # Exactly 0, by the clamp: the sum is below 0 by 10⁻⁹, far more than rounding.
        assert space.squared_norm_of_sum_from_products(just_below, just_below, -quarter) == 0


def test_spaces_compare_by_value_and_cannot_change() -> None:
    assert PoincareBall(c=2.0) == PoincareBall(c=2.0) != PoincareBall()
    assert Euclidean() == Euclidean()
    with pytest.raises(AttributeError):
        PoincareBall().c = 3.0  # type: ignore[misc]


@pytest.mark.parametrize("c", [0.0, -1.0, math.nan, math.inf])
def test_a_curvature_that_is_not_positive_is_refused(c: float) -> None:
    with pytest.raises(ConfigError, match="positive"):
        PoincareBall(c=c)


@every_space
def test_points_and_what_is_none(space: MobiusGeometry) -> None:
    assert space.contains(some_points(space, 11)).all()
    for value in (math.nan, math.inf, -math.inf):
        x = some_points(space, 12)
        x[3, 2] = value
        assert space.contains(x).tolist() == [True, True, True, False, True, True]


@pytest.mark.parametrize("c", [1e-3, 0.4, 1.0, 10.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_ball_ends_at_its_rim(c: float, dtype: torch.dtype) -> None:
    ball = PoincareBall(c)
    far = torch.randn(50, 512, dtype=dtype, generator=torch.Generator().manual_seed(0)) * 1e6
    assert ball.contains(ball.project(far)).all()
    assert not ball.contains(1.001 * ball.project(far)).any()
    rim = torch.tensor([1 / c**0.5, 0.0], dtype=torch.float64)
    assert not ball.contains(rim * (1 + 1e-12))
    assert ball.contains(rim * (1 - 1e-12))
    assert not PoincareBall().contains(torch.tensor([1.0, 0.0]))
