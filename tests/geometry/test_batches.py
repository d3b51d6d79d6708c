"""The last axis is the vector axis and the leading ones are batches: a function of many is the function of each."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from murp.geometry import Euclidean, PoincareBall, Product, disk, euclidean, hyperboloid, poincare, sphere

C = 0.7
BALL = PoincareBall(C)
PRODUCT = Product(((BALL, 1), (Euclidean(), 3)))


def points(seed: int, d: int = 4) -> Tensor:
    """(2, 3, d): no axis is as long as another."""
    return poincare.exp0(torch.randn(2, 3, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)), c=C)


def raised(x: Tensor) -> Tensor:
    return hyperboloid.from_ball(x, c=C)


OF_ONE: dict[str, Callable[[Tensor], Tensor]] = {
    "squared_norm": poincare.squared_norm,
    "gap": lambda x: poincare.gap(x, c=C),
    "conformal_factor": lambda x: poincare.conformal_factor(x, c=C),
    "contains": lambda x: poincare.contains(1.05 * x, c=C),
    "project": lambda x: poincare.project(5 * x, c=C),
    "exp0": lambda x: poincare.exp0(x, c=C),
    "log0": lambda x: poincare.log0(x, c=C),
    "flat contains": euclidean.contains,
    "flat factor": euclidean.conformal_factor,
    "from_ball": lambda x: hyperboloid.from_ball(x, c=C),
    "to_ball": lambda x: hyperboloid.to_ball(hyperboloid.from_ball(x, c=C), c=C),
    "from_tangent": lambda x: hyperboloid.from_tangent(x, c=C),
    "to_tangent": lambda x: hyperboloid.to_tangent(hyperboloid.from_ball(x, c=C), c=C),
    "circle middle": lambda x: disk.euclidean_circle(x, x[..., 0].abs(), c=C)[0],
    "circle radius": lambda x: disk.euclidean_circle(x, x[..., 0].abs(), c=C)[1],
}
OF_TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mobius_add": lambda x, y: poincare.mobius_add(x, y, c=C),
    "exp": lambda x, y: poincare.exp(x, y, c=C),
    "log": lambda x, y: poincare.log(x, y, c=C),
    "mobius_diagonal": lambda x, y: poincare.mobius_diagonal(x, y, c=C),
    "distance": lambda x, y: poincare.distance(x, y, c=C),
    "squared_distance": lambda x, y: poincare.squared_distance(x, y, c=C),
    "riemannian_gradient": lambda x, y: poincare.riemannian_gradient(x, y, c=C),
    "step": lambda x, y: poincare.step(x, y, 0.5, c=C),
    "product exp": PRODUCT.exp,
    "product log": PRODUCT.log,
    "product retract": PRODUCT.retract,
    "product transport": lambda x, y: PRODUCT.transport(x, y, x),
    "product inner": lambda x, y: PRODUCT.inner(x, y, y),
    "product of components": PRODUCT.component_inner,
    "product gradient": PRODUCT.riemannian_gradient,
    "flat distance": euclidean.distance,
    "flat squared_distance": euclidean.squared_distance,
    "inner": hyperboloid.inner,
    "hyperboloid distance": lambda x, y: hyperboloid.distance(raised(x), raised(y), c=C),
    "transport": lambda x, y: poincare.transport(x, y, x, c=C),
    "metric": lambda x, y: poincare.inner(x, y, y, c=C),
    "hyperboloid log": lambda x, y: hyperboloid.log(raised(x), raised(y), c=C),
    "hyperboloid exp": lambda x, y: hyperboloid.exp(raised(x), hyperboloid.log(raised(x), raised(y), c=C), c=C),
    "hyperboloid transport": lambda x, y: hyperboloid.transport(raised(x), raised(y), raised(x), c=C),
    "hyperboloid metric": lambda x, y: hyperboloid.metric(raised(x), raised(y), raised(y), c=C),
    "sphere log": lambda x, y: sphere.log(sphere.project(x, c=C), sphere.project(y, c=C), c=C),
    "sphere exp": lambda x, y: sphere.exp(sphere.project(x, c=C), y, c=C),
    "sphere transport": lambda x, y: sphere.transport(sphere.project(x, c=C), sphere.project(y, c=C), y, c=C),
    "geodesic": lambda x, y: disk.geodesic(BALL, x, y, 5),
    "segment": lambda x, y: disk.geodesic(Euclidean(), x, y, 5),
}


@pytest.mark.parametrize("name", OF_ONE)
def test_functions_of_one_point(name: str) -> None:
    function, x = OF_ONE[name], points(0)
    alone = torch.stack([torch.stack([function(x[i, j]) for j in range(3)]) for i in range(2)])
    torch.testing.assert_close(function(x), alone, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", OF_TWO)
def test_functions_of_two_points(name: str) -> None:
    function, x, y = OF_TWO[name], points(1), points(2)
    alone = torch.stack([torch.stack([function(x[i, j], y[i, j]) for j in range(3)]) for i in range(2)])
    torch.testing.assert_close(function(x, y), alone, rtol=1e-14, atol=1e-15)


def test_the_hyperboloid_has_its_limits_at_the_origin() -> None:
    """Below 10⁻¹⁵⁰ sinh(s)/s and asinh(r)/r cannot be computed; they are 1."""
    for size in (1e-200, 1e-160, 0.0):
        v = size * torch.tensor([0.6, -0.8], dtype=torch.float64)
        up = hyperboloid.from_tangent(v, c=C)
        # To the bit: cosh is 1 there to far below rounding, the ratios are set to 1, and doubling rounds nothing.
        assert up.tolist() == [1 / math.sqrt(C), *(2 * v).tolist()]
        assert hyperboloid.to_tangent(up, c=C).tolist() == v.tolist()


def test_rounding_makes_no_distance_imaginary() -> None:
    x = hyperboloid.from_ball(torch.tensor([0.3, 0.4], dtype=torch.float64), c=C)
    below = x.clone()
    below[0] = torch.nextafter(x[0], torch.zeros_like(x[0]))  # ⟨x - y,x - y⟩ < 0: no two points are so
    # Exactly, by the clamp: the difference has one entry that is not 0, and minus its square is below 0.
    assert float(hyperboloid.distance(x, below, c=C)) == 0
