"""One step of Riemannian SGD: the fused form is the composition, and it descends."""

from __future__ import annotations

import math

import pytest
import torch
from ball_points import balls, random_points, vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.geometry import poincare


def composed(x: Tensor, gradient: Tensor, lr: float, c: float) -> Tensor:
    return poincare.project(poincare.exp(x, -lr * poincare.riemannian_gradient(x, gradient, c=c), c=c), c=c)


@settings(deadline=None, max_examples=at_most(100))
@given(st.data(), balls(1, farthest=6.0), st.floats(0, 50))
def test_is_the_composition(data: st.DataObject, ball: tuple[float, list[Tensor]], lr: float) -> None:
    c, (x,) = ball
    gradient = data.draw(vectors(len(x), 2.0)) * math.sqrt(c)
    found, expected = poincare.step(x, gradient, lr, c=c), composed(x, gradient, lr, c)
    torch.testing.assert_close(found * math.sqrt(c), expected * math.sqrt(c), rtol=0, atol=1e-10)


@pytest.mark.parametrize("c", [1e-3, 1.0, 10.0])
def test_is_the_composition_in_float32(c: float) -> None:
    x = random_points(500, 40, c, 5.0, torch.float32, seed=1)
    gradient = torch.randn(500, 40, generator=torch.Generator().manual_seed(2)) * math.sqrt(c)
    found, expected = poincare.step(x, gradient, 0.5, c=c), composed(x.double(), gradient.double(), 0.5, c)
    torch.testing.assert_close(found.double() * math.sqrt(c), expected * math.sqrt(c), rtol=0, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_zero_gradient_returns_the_same_bits(dtype: torch.dtype) -> None:
    x = poincare.project(random_points(300, 40, 1.0, 60.0, dtype, seed=3), c=1.0)
    x[0] = 0
    # tanh(0) is 0 everywhere: x is multiplied by 1 and has 0 added; a point that is projected stays (see project).
    assert torch.equal(poincare.step(x, torch.zeros_like(x), 50.0, c=1.0), x)


def test_a_learning_rate_for_each_row() -> None:
    x = random_points(4, 3, 1.0, 2.0, torch.float64, seed=4)
    gradient = random_points(4, 3, 1.0, 2.0, torch.float64, seed=5)
    rates = torch.tensor([[0.0], [0.1], [1.0], [10.0]], dtype=torch.float64)
    rows = [poincare.step(x[i], gradient[i], rate, c=1.0) for i, rate in enumerate(rates.flatten().tolist())]
    torch.testing.assert_close(poincare.step(x, gradient, rates, c=1.0), torch.stack(rows))


def test_a_gradient_that_is_not_finite_shows() -> None:
    x = random_points(3, 4, 1.0, 2.0, torch.float32, seed=6)
    gradient = torch.ones_like(x)
    gradient[0, 1], gradient[1, 2] = math.nan, math.inf
    moved = poincare.step(x, gradient, 1.0, c=1.0)
    assert [row.isfinite().all().item() for row in moved] == [False, False, True]


@pytest.mark.parametrize("c", [0.3, 1.0, 5.0])
def test_descends_with_the_slope_of_the_gradient(c: float) -> None:
    """f(step) = f(x) - lr |grad f|² + O(lr²), with |grad f|² = |∇f|²/λ²: the error falls with lr squared."""
    x = random_points(5, 4, c, 3.0, torch.float64, seed=7).requires_grad_()
    target = random_points(5, 4, c, 3.0, torch.float64, seed=8)
    value = poincare.squared_distance(x, target, c=c)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    x = x.detach()
    fall = (gradient / poincare.conformal_factor(x, c=c)).square().sum(-1)
    rates = [1e-2, 1e-3, 1e-4]
    errors = []
    for lr in rates:
        after = poincare.squared_distance(poincare.step(x, gradient, lr, c=c), target, c=c)
        errors.append((after - (value.detach() - lr * fall)).abs())
    slopes = torch.stack(errors).log10().diff(dim=0).neg()
    torch.testing.assert_close(slopes, torch.full_like(slopes, 2.0), rtol=0, atol=0.1)
