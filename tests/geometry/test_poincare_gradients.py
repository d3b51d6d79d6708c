"""Gradients: right at generic points, finite everywhere, and right where a formula is 0/0."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from ball_points import at_distance, random_points
from torch import Tensor
from torch.autograd import gradcheck
from torch.autograd.functional import jacobian

from murp.geometry import poincare


def point_functions(c: float) -> dict[str, Callable[[Tensor, Tensor], Tensor]]:
    """Every differentiable function of the module, as one of two points of the ball."""
    return {
        "gap": lambda x, y: poincare.gap(x, c=c),
        "conformal_factor": lambda x, y: poincare.conformal_factor(x, c=c),
        "mobius_add": lambda x, y: poincare.mobius_add(x, y, c=c),
        "recentre": lambda x, y: poincare.recentre(x, y, c=c),
        "exp0": lambda x, y: poincare.exp0(y, c=c),
        "log0": lambda x, y: poincare.log0(x, c=c),
        "exp": lambda x, y: poincare.exp(x, y, c=c),
        "log": lambda x, y: poincare.log(x, y, c=c),
        "mobius_diagonal": lambda x, y: poincare.mobius_diagonal(y, x, c=c),
        "distance": lambda x, y: poincare.distance(x, y, c=c),
        "squared_distance": lambda x, y: poincare.squared_distance(x, y, c=c),
        "squared_distance_from_products": lambda x, y: poincare.squared_distance_from_products(
            dot(x, x), dot(y, y), dot(x, y), c=c
        ),
        "squared_norm_of_sum_from_products": lambda x, y: poincare.squared_norm_of_sum_from_products(
            dot(x, x), dot(y, y), dot(x, y), c=c
        ),
        "squared_distance_to_sum_from_products": lambda x, y: poincare.squared_distance_to_sum_from_products(
            dot(x, x), dot(y, y), 0.25 * dot(y, y), dot(x, y), 0.5 * dot(x, y), 0.5 * dot(y, y), c=c
        ),
    }


def dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1)


NAMES = list(point_functions(1.0))
every_function = pytest.mark.parametrize("name", NAMES)


@every_function
@pytest.mark.parametrize("c", [0.3, 1.0, 10.0])
def test_gradients_at_generic_points(name: str, c: float) -> None:
    x, y = (random_points(3, 4, c, 2.5, torch.float64, seed).requires_grad_() for seed in (1, 2))
    assert gradcheck(point_functions(c)[name], (x, y))


@every_function
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("c", [1e-3, 1.0, 10.0])
def test_gradients_are_finite_everywhere(name: str, dtype: torch.dtype, c: float) -> None:
    generic = random_points(1, 3, c, 1.0, dtype, seed=3)[0]
    zero = torch.zeros_like(generic)
    rim = poincare.project(generic * 1e3, c=c)
    tiny = torch.full_like(generic, torch.finfo(dtype).tiny)
    small = 1e-3 * torch.finfo(dtype).eps * generic
    places = [generic, zero, rim, -rim, tiny, small]
    x, y = (torch.stack(points) for points in zip(*itertools.product(places, places), strict=True))
    inputs = (x.requires_grad_(), y.requires_grad_())
    value = point_functions(c)[name](*inputs)
    gradients = torch.autograd.grad(value.sum(), inputs, allow_unused=True)
    for found in (value, *gradients):
        assert found is None or found.isfinite().all(), found


@pytest.mark.parametrize("c", [0.3, 1.0, 10.0])
def test_gradients_where_the_formula_is_zero_over_zero(c: float) -> None:
    x = random_points(1, 3, c, 2.0, torch.float64, seed=4)[0]
    zero, one = torch.zeros_like(x), torch.eye(3, dtype=torch.float64)

    def slope(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
        found = jacobian(function, at)
        assert isinstance(found, Tensor)
        return found

    def check(function: Callable[[Tensor], Tensor], at: Tensor, expected: Tensor) -> None:
        torch.testing.assert_close(slope(function, at), expected, rtol=0, atol=1e-12)

    check(lambda v: poincare.exp0(v, c=c), zero, one)
    check(lambda p: poincare.log0(p, c=c), zero, one)
    check(lambda v: poincare.exp(x, v, c=c), zero, one)
    check(lambda p: poincare.log(x, p, c=c), x, one)
    check(lambda p: poincare.distance(x, p, c=c), x, zero)
    check(lambda p: poincare.squared_distance(x, p, c=c), x, zero)
    # 0 ⊗ x = 0 and grows with M as M log₀(x) does
    check(lambda m: poincare.mobius_diagonal(m, x, c=c), zero, torch.diag(poincare.log0(x, c=c)))
    check(lambda p: poincare.mobius_diagonal(x, p, c=c), zero, torch.diag(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_slope_of_the_squared_distance_at_zero(dtype: torch.dtype) -> None:
    z = torch.tensor([0.0, -1e-9, 1e-30], dtype=dtype, requires_grad=True)
    value = poincare.squared_distance_of_sinh(z, c=0.5)
    (slope,) = torch.autograd.grad(value.sum(), z)
    torch.testing.assert_close(value.detach(), torch.tensor([0, 0, 8e-30], dtype=dtype), rtol=1e-6, atol=1e-36)
    torch.testing.assert_close(slope, torch.tensor([8.0, 0.0, 8.0], dtype=dtype))


@pytest.mark.parametrize("c", [0.3, 1.0])
def test_riemannian_gradient_points_along_the_geodesic(c: float) -> None:
    """The Riemannian gradient of d(x, y)²/2 by x is -log_x(y)."""
    x, y = (random_points(6, 5, c, 3.0, torch.float64, seed) for seed in (5, 6))
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(poincare.squared_distance(x, y, c=c).sum() / 2, x)
    found = poincare.riemannian_gradient(x.detach(), gradient, c=c)
    torch.testing.assert_close(found, -poincare.log(x.detach(), y, c=c))


@pytest.mark.parametrize("s", [0.5, 6.0, 12.0])
def test_distance_from_the_origin_grows_at_the_metrics_rate(s: float) -> None:
    x = at_distance(torch.ones(4, dtype=torch.float64), s, 1.0).requires_grad_()
    (gradient,) = torch.autograd.grad(poincare.distance(torch.zeros(4, dtype=torch.float64), x, c=1.0), x)
    factor = poincare.conformal_factor(x.detach(), c=1.0).item()
    assert math.isclose(gradient.norm().item(), factor, rel_tol=1e-9)
