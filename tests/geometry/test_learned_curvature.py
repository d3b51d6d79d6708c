"""A curvature that is a tensor: one for each row, with gradients into it, and the numbers of a plain float."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ball_oracle as oracle
import pytest
import torch
from ball_oracle import mp
from ball_points import CURVATURES, at_distance, random_points
from torch import Tensor

from murp.geometry import poincare

Function = Callable[[Tensor, Tensor, float | Tensor], Tensor]


def dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


# Functions of vectors take c as [..., 1]. Those of numbers are given numbers with such an axis here.
FUNCTIONS: dict[str, Function] = {
    "gap": lambda x, y, c: poincare.gap(x, c=c),
    "conformal_factor": lambda x, y, c: poincare.conformal_factor(x, c=c),
    "project": lambda x, y, c: poincare.project(3 * x, c=c),
    "mobius_add": lambda x, y, c: poincare.mobius_add(x, y, c=c),
    "recentre": lambda x, y, c: poincare.recentre(x, y, c=c),
    "exp0": lambda x, y, c: poincare.exp0(x, c=c),
    "exp0_scale": lambda x, y, c: poincare.exp0_scale(dot(x, x), c=c),
    "log0": lambda x, y, c: poincare.log0(x, c=c),
    "exp": lambda x, y, c: poincare.exp(x, y, c=c),
    "log": lambda x, y, c: poincare.log(x, y, c=c),
    "mobius_diagonal": lambda x, y, c: poincare.mobius_diagonal(y, x, c=c),
    "distance": lambda x, y, c: poincare.distance(x, y, c=c),
    "squared_distance": lambda x, y, c: poincare.squared_distance(x, y, c=c),
    "squared_distance_of_sinh": lambda x, y, c: poincare.squared_distance_of_sinh(dot(x, x), c=c),
    "from_products": lambda x, y, c: poincare.squared_distance_from_products(dot(x, x), dot(y, y), dot(x, y), c=c),
    "to_sum": lambda x, y, c: poincare.squared_distance_to_sum_from_products(
        dot(x, x), dot(y, y), 0.25 * dot(y, y), dot(x, y), 0.5 * dot(x, y), 0.5 * dot(y, y), c=c
    ),
    "to_tangent": lambda x, y, c: poincare.squared_distance_to_tangent_from_products(
        dot(x, x), dot(y, y), dot(x, y), c=c
    ),
    "norm_of_sum": lambda x, y, c: poincare.squared_norm_of_sum_from_products(dot(x, x), dot(y, y), dot(x, y), c=c),
    "riemannian_gradient": lambda x, y, c: poincare.riemannian_gradient(x, y, c=c),
    "inner": lambda x, y, c: poincare.inner(x, y, y, c=c),
    "transport": lambda x, y, c: poincare.transport(x, y, x + 2 * y, c=c),
    "step": lambda x, y, c: poincare.step(x, y, 0.5, c=c),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)
C = torch.tensor([[0.05], [0.3], [0.7], [1.0], [1.3]], dtype=torch.float64)


def two_points(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Points of the smallest of the balls, and so of all."""
    x, y = (random_points(5, 4, 1.3, 2.5, torch.float64, seed).to(dtype) for seed in (1, 2))
    return x, y


@every_function
def test_each_row_has_its_own(name: str) -> None:
    function, (x, y) = FUNCTIONS[name], two_points()
    alone = torch.stack([function(x[i], y[i], float(C[i])) for i in range(5)])
    torch.testing.assert_close(function(x, y, C), alone, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(function(x, y, C[2, 0]), function(x, y, float(C[2])), rtol=1e-13, atol=1e-15)


def test_membership_of_each_row() -> None:
    x = torch.full((5, 1), 1.0, dtype=torch.float64)
    assert poincare.contains(x, c=C).tolist() == [True, True, True, False, False]


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "step"])
@pytest.mark.parametrize("at", ["anywhere", "origin", "equal"])
def test_slope_by_the_curvature(name: str, at: str) -> None:
    """f(c + h) = f(c) + h f'(c) + O(h²): the error falls a hundredfold with a tenth of h, or is rounding.

    Without a path of gradients into c it would fall tenfold.
    """
    function, (x, y) = FUNCTIONS[name], two_points()
    if at != "anywhere":
        x = torch.zeros_like(x) if at == "origin" else y
    weights = torch.randn(function(x, y, C).shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3))

    def value(c: Tensor) -> Tensor:
        return (weights * function(x, y, c)).flatten(1).sum(1) if weights.dim() > 1 else weights * function(x, y, c)

    c = C.clone().requires_grad_()
    before = value(c)
    (slope,) = torch.autograd.grad(before.sum(), c)
    errors = [(value(C + h) - before.detach() - h * slope.squeeze(1)).abs() for h in (1e-3, 1e-4)]
    assert (errors[1] <= errors[0] / 50 + 1e-13).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "step"])
def test_gradients_by_everything_are_finite_everywhere(name: str, dtype: torch.dtype) -> None:
    generic = two_points(dtype)[0][0]
    rim = poincare.project(generic * 1e3, c=1.0)
    places = [generic, torch.zeros_like(generic), rim, -rim, 1e-3 * torch.finfo(dtype).eps * generic]
    x, y = (torch.stack(points) for points in zip(*itertools.product(places, places), strict=True))
    inputs = [t.requires_grad_() for t in (x, y, torch.ones(len(x), 1, dtype=dtype))]
    value = FUNCTIONS[name](inputs[0], inputs[1], inputs[2])
    gradients = torch.autograd.grad(value.sum(), inputs, allow_unused=True)
    for found in (value, *gradients):
        assert found is None or found.isfinite().all(), found


# r = √c|v|: at the origin, small, usual, about the place where the form changes (10 and 20), far beyond.
LENGTHS = (0.0, 1e-9, 1e-4, 0.3, 2.0, 5.0, 9.0, 9.9, 10.1, 12.0, 19.9, 20.2, 50.0)


def to_tangent(x: Tensor, v: Tensor, c: float | Tensor) -> Tensor:
    return poincare.squared_distance_to_tangent_from_products(dot(x, x), dot(v, v), dot(x, v), c).squeeze(-1)


@pytest.mark.parametrize(("dtype", "farthest", "bar"), [(torch.float64, 6.0, 1e-9), (torch.float32, 3.0, 3e-4)])
@pytest.mark.parametrize("c", CURVATURES)
@pytest.mark.parametrize("d", [1, 3, 40])
def test_distance_to_the_end_of_a_tangent_vector(
    dtype: torch.dtype, farthest: float, bar: float, c: float, d: int
) -> None:
    """Against exact arithmetic, with v as the float that it is; nothing saturates, however long v is."""
    for x in [*random_points(4, d, c, farthest, dtype, seed=d), torch.zeros(d, dtype=dtype)]:
        direction = torch.randn(d, dtype=dtype, generator=torch.Generator().manual_seed(d))
        for r in LENGTHS:
            v = torch.nn.functional.normalize(direction, dim=0) * (r / c**0.5)
            with mp.workdps(120):  # 1 - tanh²(50) is 10⁻⁴³
                truth = mp.sqrt(c) * oracle.distance(oracle.exact(x), oracle.exp0(oracle.exact(v), c), c)
            found = float(to_tangent(x, v, c)) ** 0.5 * c**0.5
            # Inner products carry a distance of about the root of their rounding where the points are near.
            assert abs(found - truth) < bar * (1 + truth) + 4 * torch.finfo(dtype).eps ** 0.5 * (truth < 1)


@pytest.mark.parametrize("r", LENGTHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_slopes_of_the_distance_to_the_end_of_a_tangent_vector(r: float, dtype: torch.dtype) -> None:
    """Against the slope of exact arithmetic, by x, v and c, up to |v| = 50 also in float32."""
    x = at_distance(torch.tensor([1.0, -2.0, 0.5], dtype=dtype), 1.5, 1.0)
    v = torch.nn.functional.normalize(torch.tensor([0.3, 1.0, -0.4], dtype=dtype), dim=0) * r
    inputs = [t.clone().requires_grad_() for t in (x, v, torch.tensor([1.0], dtype=dtype))]
    found = torch.cat(torch.autograd.grad(to_tangent(inputs[0], inputs[1], inputs[2]), inputs))
    place = [*oracle.exact(x), *oracle.exact(v), mp.mpf(1)]

    def exact_square(*at: Any) -> Any:
        values = list(at)
        return oracle.distance(values[:3], oracle.exp0(values[3:6], values[6]), values[6]) ** 2

    truth = []
    with mp.workdps(120):
        h = mp.mpf(10) ** -15
        for i in range(7):
            ends = [exact_square(*(p + sign * h * (j == i) for j, p in enumerate(place))) for sign in (1, -1)]
            truth.append((ends[0] - ends[1]) / (2 * h))
    expected = torch.tensor([float(value) for value in truth], dtype=dtype)
    bar = 2e-4 if dtype == torch.float32 else 1e-9
    torch.testing.assert_close(found, expected, rtol=bar, atol=bar)


def test_a_curvature_for_each_query_and_shared_candidates() -> None:
    """(B, 1) against vectors v of N entities: the shapes of a model that scores all entities."""
    x = random_points(5, 3, 1.3, 2.0, torch.float64, seed=5)
    v = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(6))
    found = poincare.squared_distance_to_tangent_from_products(dot(x, x), dot(v, v).T, x @ v.T, C)
    assert found.shape == (5, 8)
    for i in range(5):
        c = float(C[i])
        torch.testing.assert_close(found[i], poincare.squared_distance(x[i], poincare.exp0(v, c=c), c=c))
