"""The sphere against arithmetic with 50 digits: points that are near, anywhere and nearly opposite."""

from __future__ import annotations

import math

import ball_oracle as oracle
import pytest
import torch
from ball_oracle import Vector, mp
from ball_points import CURVATURES
from torch import Tensor

from murp.geometry import Sphere, sphere

every_sphere = pytest.mark.parametrize("c", CURVATURES)
every_dimension = pytest.mark.parametrize("d", [1, 2, 40])


def on_it(x: Tensor, c: float) -> Vector:
    """The exact point in the direction of x: what its rounding leaves off is not judged."""
    exact = oracle.exact(x)
    return oracle.scaled(1 / (mp.sqrt(c) * oracle.norm(exact)), exact)


def angle(x: Vector, y: Vector) -> Vector:
    apart, together = ([a + sign * b for a, b in zip(x, y, strict=True)] for sign in (-1, 1))
    return 2 * mp.atan2(oracle.norm(apart), oracle.norm(together))


def pairs(d: int, c: float) -> list[tuple[Tensor, Tensor]]:
    space, generator = Sphere(c), torch.Generator().manual_seed(d)
    xs = space.project(torch.randn(6, d + 1, dtype=torch.float64, generator=generator))
    v = space.project_tangent(xs, torch.randn(6, d + 1, dtype=torch.float64, generator=generator))
    v = v / (math.sqrt(c) * v.norm(dim=-1, keepdim=True))
    return [
        (x, y)
        for length in (1e-8, 1e-3, 1.0, 2.0, 3.1, math.pi - 1e-6)
        for x, y in zip(xs, space.exp(xs, length * v), strict=True)
    ]


@every_sphere
@every_dimension
def test_distances(c: float, d: int) -> None:
    for x, y in pairs(d, c):
        truth = angle(on_it(x, c), on_it(y, c)) / mp.sqrt(c)
        # Of points as near as 10⁻⁸ rounding leaves 8 digits.
        assert abs(sphere.distance(x, y, c=c).item() - truth) < 1e-15 * (4 / math.sqrt(c))
        assert abs(sphere.squared_distance(x, y, c=c).item() - truth**2) < 1e-14 * float(truth) * (4 / math.sqrt(c))


@every_sphere
@every_dimension
def test_log_and_transport(c: float, d: int) -> None:
    for x, y in pairs(d, c):
        ex, ey = on_it(x, c), on_it(y, c)
        theta = angle(ex, ey)
        truth = [theta / mp.sin(theta) * (b - mp.cos(theta) * a) for a, b in zip(ex, ey, strict=True)]
        # Near the antipode the direction is that of a difference of the size of sin θ.
        bar = 1e-14 / float(mp.sin(theta))
        log = sphere.log(x, y, c=c)
        assert oracle.relative_error(log, truth) < bar
        v = oracle.exact(log)
        factor = mp.mpf(c) * oracle.dot(ey, v) / (1 + mp.mpf(c) * oracle.dot(ex, ey))
        moved = [w - factor * (a + b) for a, b, w in zip(ex, ey, v, strict=True)]
        assert oracle.relative_error(sphere.transport(x, y, log, c=c), moved) < bar


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_antipodes_have_finite_maps(dtype: torch.dtype) -> None:
    x = Sphere().random(torch.Generator().manual_seed(0), (5, 4), 1.0, dtype)
    v = Sphere().project_tangent(x, torch.ones_like(x))
    for y in (-x, sphere.project(-x + 1e-9 * v, c=1.0)):
        torch.testing.assert_close(sphere.distance(x, y, c=1.0), torch.full((5,), math.pi, dtype=dtype))
        assert sphere.log(x, y, c=1.0).isfinite().all()
        assert sphere.transport(x, y, v, c=1.0).isfinite().all()


def test_zero_has_no_nearest_point_and_becomes_the_origin() -> None:
    # Exact: 0.5 is 1/√4.
    assert sphere.project(torch.zeros(2, 3), c=4.0).tolist() == [[0.5, 0.0, 0.0]] * 2
