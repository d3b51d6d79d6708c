"""Accuracy to the boundary, against arithmetic with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

import ball_oracle as oracle
import pytest
import torch
from ball_points import CURVATURES, at_distance, random_points
from torch import Tensor

from murp.geometry import poincare

# dtype, farthest scaled distance from the origin, allowed relative error
BARS = [(torch.float64, 12.0, 1e-9), (torch.float32, 6.0, 1e-3)]
bars = pytest.mark.parametrize(("dtype", "farthest", "bar"), BARS, ids=["float64", "float32"])
every_ball = pytest.mark.parametrize("c", CURVATURES)
every_dimension = pytest.mark.parametrize("d", [1, 2, 7, 40])


def pairs(d: int, c: float, farthest: float, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of points: anywhere, nearly equal, nearly opposite, one in the origin, both far out."""
    xs = random_points(8, d, c, farthest, dtype, seed=d)
    ys = random_points(8, d, c, farthest, dtype, seed=d + 100)
    yield from zip(xs, ys, strict=True)
    for x, y in zip(xs[-3:], ys[:3], strict=True):
        # of the point's own gap: a neighbour at about this hyperbolic distance
        nearby = 1e-3 * poincare.gap(x, c=c) * torch.nn.functional.normalize(y, dim=0) / math.sqrt(c)
        yield x, poincare.project(x + nearby, c=c)
        yield x, poincare.project(-x + nearby, c=c)
    yield torch.zeros_like(xs[0]), ys[-1]
    yield xs[-1], torch.zeros_like(ys[0])
    yield xs[-1], at_distance(-xs[-1], farthest, c)
    yield xs[-1], at_distance(xs[-1], farthest / 2, c)


def points(d: int, c: float, farthest: float, dtype: torch.dtype) -> Iterator[Tensor]:
    yield from random_points(10, d, c, farthest, dtype, seed=d)
    for s in (1e-12, 1e-6, 1e-3):
        yield at_distance(torch.ones(d, dtype=dtype), s, c)


@bars
@every_ball
@every_dimension
def test_distance(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    for x, y in pairs(d, c, farthest, dtype):
        truth = oracle.distance(oracle.exact(x), oracle.exact(y), c)
        assert oracle.relative_error(poincare.distance(x, y, c=c), [truth]) < bar
        assert oracle.relative_error(poincare.squared_distance(x, y, c=c), [truth**2]) < bar


@bars
@every_ball
@every_dimension
def test_mobius_add(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    for x, y in pairs(d, c, farthest, dtype):
        truth = oracle.mobius_add(oracle.exact(x), oracle.exact(y), c)
        assert oracle.relative_error(poincare.mobius_add(x, y, c=c), truth) < bar


@bars
@every_ball
@every_dimension
def test_log(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    for x, y in pairs(d, c, farthest, dtype):
        truth = oracle.log(oracle.exact(x), oracle.exact(y), c)
        assert oracle.relative_error(poincare.log(x, y, c=c), truth) < bar


@bars
@every_ball
@every_dimension
def test_exp(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    for x, y in pairs(d, c, farthest, dtype):
        if y.abs().max() * math.sqrt(c) < 0.1:
            continue  # from far out to the origin: a rounding of x alone moves the end by eps / (1 - c|x|²)
        v = poincare.log(x, y, c=c)
        truth = oracle.exp(oracle.exact(x), oracle.exact(v), c)
        assert oracle.relative_error(poincare.exp(x, v, c=c), truth) < bar


@bars
@every_ball
@every_dimension
def test_transport(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    v = torch.randn(d, dtype=dtype, generator=torch.Generator().manual_seed(d)) / math.sqrt(c)
    for x, y in pairs(d, c, farthest, dtype):
        truth = oracle.transport(oracle.exact(x), oracle.exact(y), oracle.exact(v), c)
        assert oracle.relative_error(poincare.transport(x, y, v, c=c), truth) < bar


@bars
@every_ball
@every_dimension
def test_exp0_and_log0(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    for x in points(d, c, farthest, dtype):
        v = poincare.log0(x, c=c)
        assert oracle.relative_error(v, oracle.log0(oracle.exact(x), c)) < bar
        assert oracle.relative_error(poincare.exp0(v, c=c), oracle.exp0(oracle.exact(v), c)) < bar


@bars
@every_ball
@every_dimension
def test_mobius_diagonal(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    ms = 2 * torch.rand(13, d, dtype=dtype, generator=torch.Generator().manual_seed(d)) - 1
    ms[-1] *= 1e6
    for m, x in zip(ms, points(d, c, farthest, dtype), strict=True):
        truth = oracle.mobius_diagonal(oracle.exact(m), oracle.exact(x), c)
        assert oracle.relative_error(poincare.mobius_diagonal(m, x, c=c), truth) < bar


@bars
@every_ball
@every_dimension
def test_conformal_factor(dtype: torch.dtype, farthest: float, bar: float, c: float, d: int) -> None:
    for x in points(d, c, farthest, dtype):
        truth = 2 * oracle.half_conformal_factor(oracle.exact(x), c)
        assert oracle.relative_error(poincare.conformal_factor(x, c=c), [truth]) < bar
        assert oracle.relative_error(poincare.gap(x, c=c), [2 / truth]) < bar


@every_ball
@every_dimension
def test_distances_from_products(c: float, d: int) -> None:
    """Inner products of rounded size 1 are the inputs, so the bar is what they can carry at distance 6."""
    for (x, y), (r, _) in zip(pairs(d, c, 6.0, torch.float64), pairs(d, c, 2.0, torch.float64), strict=True):
        ex, ey, er = oracle.exact(x), oracle.exact(y), oracle.exact(r)
        xx, yy, rr, xy, xr, yr = (torch.linalg.vecdot(a, b) for a, b in _six(x, y, r))
        truth = oracle.distance(ex, ey, c)
        found = poincare.squared_distance_from_products(xx, yy, xy, c=c)
        assert abs(math.sqrt(found) - truth) * math.sqrt(c) < 1e-6
        total = oracle.mobius_add(ey, er, c)
        found = poincare.squared_distance_to_sum_from_products(xx, yy, rr, xy, xr, yr, c=c)
        assert abs(math.sqrt(found) - oracle.distance(ex, total, c)) * math.sqrt(c) < 1e-6
        found = poincare.squared_norm_of_sum_from_products(yy, rr, yr, c=c)
        assert abs(found.item() - oracle.dot(total, total)) * c < 1e-12


def _six(x: Tensor, v: Tensor, r: Tensor) -> list[tuple[Tensor, Tensor]]:
    return [(x, x), (v, v), (r, r), (x, v), (x, r), (v, r)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_squared_distance_of_sinh_over_its_whole_range(dtype: torch.dtype) -> None:
    z = torch.logspace(-20, 12, 97, dtype=dtype, requires_grad=True)
    found = poincare.squared_distance_of_sinh(z, c=1.0)
    (slope,) = torch.autograd.grad(found.sum(), z)
    eps = torch.finfo(dtype).eps
    for z_i, found_i, slope_i in zip(z.detach(), found.detach(), slope, strict=True):
        (exact,) = oracle.exact(z_i.reshape(1))
        angle = oracle.mp.asinh(oracle.mp.sqrt(exact))
        assert oracle.relative_error(found_i, [4 * angle**2]) < 8 * eps
        assert oracle.relative_error(slope_i, [4 * angle / oracle.mp.sqrt(exact * (1 + exact))]) < 8 * eps


def test_distances_do_not_saturate_near_the_boundary() -> None:
    s = torch.arange(1.0, 33.0, dtype=torch.float64)
    x = at_distance(torch.ones(32, 3, dtype=torch.float64), s.unsqueeze(-1), 1.0)
    found = poincare.distance(torch.zeros_like(x), x, c=1.0)
    # A point at distance s is 1 - |x|² = 4 e⁻ˢ/(1 + e⁻ˢ)² from the edge. To round each of its coordinates by eps/2
    # changes that by eps at most, and so the distance, to first order, by eps (1 + eˢ)²/4eˢ; the point is made by
    # a hyperbolic tangent, a root and a quotient, each rounded in its own way on its processor.
    eps = torch.finfo(torch.float64).eps
    stored = eps * (1 + s.exp()) ** 2 / (4 * s.exp())
    assert ((found - s).abs() < 8 * stored + 8 * eps * s).all()
    assert (found.diff() > 0.5).all()
