"""The laws of a space to train in, for every space, over seeds, precisions and curvatures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.errors import ConfigError
from murp.geometry import Euclidean, Geometry, Hyperboloid, MobiusGeometry, PoincareBall, Product, Sphere

law = settings(deadline=None, max_examples=at_most(12))
MIXED = Product(((PoincareBall(0.5), 3), (Sphere(2.0), 4), (Euclidean(), 2), (Hyperboloid(), 3)))
SPACES: list[tuple[Geometry, int]] = [
    (Euclidean(), 5),
    *((PoincareBall(c), 5) for c in (1e-3, 1.0, 10.0)),
    *((Hyperboloid(c), 5) for c in (1e-3, 1.0, 10.0)),
    *((Sphere(c), 5) for c in (1e-3, 1.0, 10.0)),
    (PoincareBall(), 1),
    (Hyperboloid(), 2),
    (Sphere(), 2),
    (MIXED, MIXED.width),
    (Product(((MIXED, MIXED.width), (Euclidean(), 1))), MIXED.width + 1),
]
every_space = pytest.mark.parametrize(("space", "width"), SPACES, ids=[f"{space}-{width}" for space, width in SPACES])
seeds = st.integers(0, 2**31)
dtypes = st.sampled_from([torch.float32, torch.float64])
TOLERANCE = {torch.float32: 2e-4, torch.float64: 1e-10}


def size(space: Geometry) -> float:
    """A length that is neither small nor large in the space: 1/√c, whatever c."""
    return 1 / math.sqrt(getattr(space, "c", 0.0) or 1.0)


class Sample:
    """Points x, y and tangent vectors u, v at x, as long as the space's own length or so."""

    def __init__(self, space: Geometry, width: int, seed: int, dtype: torch.dtype = torch.float64) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.space, self.shape, self.dtype = space, (7, width), dtype
        self.x, self.y, self.other = (self.point() for _ in range(3))
        self.u, self.v = self.tangent(), self.tangent()

    def point(self) -> Tensor:
        return self.space.random(self.generator, self.shape, 0.12 * size(self.space), self.dtype)

    def tangent(self) -> Tensor:
        drawn = torch.randn(self.shape, dtype=self.dtype, generator=self.generator)
        v = self.space.project_tangent(self.x, drawn)
        return v * (size(self.space) / self.space.inner(self.x, v, v).sqrt().clamp(min=1e-3))

    def close(self, found: Tensor, expected: Tensor, scale: float | None = None) -> None:
        unit = size(self.space) if scale is None else scale
        assert found.dtype == expected.dtype == self.dtype
        torch.testing.assert_close(
            found / unit, expected / unit, rtol=TOLERANCE[self.dtype], atol=TOLERANCE[self.dtype]
        )


@every_space
@law
@given(seeds, dtypes)
def test_exp_and_log_are_inverse_and_as_long_as_they_should_be(
    space: Geometry, width: int, seed: int, dtype: torch.dtype
) -> None:
    s = Sample(space, width, seed, dtype)
    there = space.log(s.x, s.y)
    s.close(space.exp(s.x, there), s.y)
    s.close(space.log(s.x, space.exp(s.x, s.v)), s.v)
    s.close(space.inner(s.x, there, there).clamp(min=0).sqrt().squeeze(-1), space.distance(s.x, s.y))
    s.close(space.distance(s.x, space.exp(s.x, s.v)), space.inner(s.x, s.v, s.v).sqrt().squeeze(-1))
    s.close(space.project_tangent(s.x, there), there)
    assert space.contains(space.exp(s.x, s.v)).all()


@every_space
@law
@given(seeds, dtypes)
def test_exp0_and_log0_are_exp_and_log_at_the_origin(
    space: Geometry, width: int, seed: int, dtype: torch.dtype
) -> None:
    s = Sample(space, width, seed, dtype)
    origin = space.origin(width, dtype).expand(s.shape)
    v = 0.5 * space.project_tangent(origin, space.transport(s.x, origin, s.v))
    s.close(space.exp0(v), space.exp(origin, v))
    s.close(space.log0(s.x), space.log(origin, s.x))
    s.close(space.log0(space.exp0(v)), v)


@every_space
@law
@given(seeds, dtypes)
def test_transport_keeps_inner_products_and_comes_back(
    space: Geometry, width: int, seed: int, dtype: torch.dtype
) -> None:
    s = Sample(space, width, seed, dtype)
    u, v = (space.transport(s.x, s.y, w) for w in (s.u, s.v))
    s.close(space.inner(s.y, u, v), space.inner(s.x, s.u, s.v), size(space) ** 2)
    s.close(space.inner(s.y, v, v), space.inner(s.x, s.v, s.v), size(space) ** 2)
    s.close(space.project_tangent(s.y, v), v)
    s.close(space.transport(s.y, s.x, v), s.v)
    s.close(space.transport(s.x, s.x, s.v), s.v)
    # The velocity of a geodesic is carried along it.
    s.close(space.transport(s.x, s.y, space.log(s.x, s.y)), -space.log(s.y, s.x))


@every_space
@law
@given(seeds)
def test_distances_are_a_metric(space: Geometry, width: int, seed: int) -> None:
    s = Sample(space, width, seed)
    xy, yz, xz = space.distance(s.x, s.y), space.distance(s.y, s.other), space.distance(s.x, s.other)
    s.close(space.distance(s.y, s.x), xy)
    assert (xz <= xy + yz + 1e-9 * size(space)).all()
    s.close(space.squared_distance(s.x, s.y), xy.square(), size(space) ** 2)
    # To the bit: what is subtracted is the same number.
    assert (space.distance(s.x, s.x) == 0).all()
    assert (space.squared_distance(s.x, s.x) < 1e-300).all()


@every_space
@law
@given(seeds)
def test_the_gradient_of_half_the_squared_distance_points_away(space: Geometry, width: int, seed: int) -> None:
    s = Sample(space, width, seed)
    s.x.requires_grad_()
    (gradient,) = torch.autograd.grad(space.squared_distance(s.x, s.y).sum() / 2, s.x)
    x = s.x.detach()
    found = space.riemannian_gradient(x, gradient)
    s.close(found, -space.log(x, s.y))
    s.close(space.step(x, gradient, 0.5), space.project(space.exp(x, -0.5 * found)))


@every_space
def test_a_curvature_makes_triangles_narrower_or_wider(space: Geometry, width: int) -> None:
    """d(exp(tu), exp(tv))² = t²|u - v|² - K t⁴/3 (|u|²|v|² - ⟨u,v⟩²) + O(t⁶) at x, with the curvature K."""
    if space.curvature is None:
        assert isinstance(space, Product)
        return
    t, s = 1e-2, Sample(space, width, 12)
    far = space.squared_distance(space.exp(s.x, t * s.u), space.exp(s.x, t * s.v)) / t**2
    uu, vv, uv = (space.inner(s.x, a, b).squeeze(-1) for a, b in ((s.u, s.u), (s.v, s.v), (s.u, s.v)))
    lost = 3 * (uu - 2 * uv + vv - far) / t**2
    unit = size(space) ** 2
    torch.testing.assert_close(lost / unit, space.curvature * (uu * vv - uv.square()) / unit, rtol=1e-3, atol=1e-6)


def falls_a_hundredfold(errors: list[Tensor], space: Geometry) -> None:
    """The largest errors of steps of length t and t/10 that are O(t²), but for rounding."""
    longer, shorter = errors
    assert shorter.max() <= longer.max() / 50 + 1e-12 * size(space)


@every_space
def test_a_retraction_agrees_with_exp_to_second_order(space: Geometry, width: int) -> None:
    s = Sample(space, width, 3)
    steps = [t * s.v for t in (1e-2, 1e-3)]
    falls_a_hundredfold([(space.retract(s.x, v) - space.exp(s.x, v)).abs().amax(-1) for v in steps], space)


@every_space
@pytest.mark.parametrize("way", ["exp", "retract"])
def test_the_gradient_is_the_slope_along_both(space: Geometry, width: int, way: str) -> None:
    """f(x moved by tv) = f(x) + t⟨grad f, v⟩ + O(t²)."""
    s = Sample(space, width, 4)
    x = s.x.clone().requires_grad_()
    value = space.squared_distance(x, s.y)
    (gradient,) = torch.autograd.grad(value.sum(), x)
    slope = space.inner(s.x, space.riemannian_gradient(s.x, gradient), s.v).squeeze(-1)
    errors = []
    for t in (1e-2, 1e-3):
        moved = getattr(space, way)(s.x, t * s.v)
        errors.append((space.squared_distance(moved, s.y) - value.detach() - t * slope).abs())
    falls_a_hundredfold(errors, space)


@every_space
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_was_projected_is_a_point_and_stays(space: Geometry, width: int, dtype: torch.dtype) -> None:
    drawn = torch.randn(200, width, dtype=dtype, generator=torch.Generator().manual_seed(1))
    for scale in (0.0, 1e-6, 1.0, 1e3):
        x = space.project(scale * size(space) * drawn)
        assert space.contains(x).all()
        # To the bit: a point is multiplied by exactly 1, and a time component is the same function of the same numbers.
        assert torch.equal(space.project(x), x)
        # So is a step of no length: cosh, cos and sinh(r)/r are 1 there to far below rounding, and tanh(0) is 0.
        zero = torch.zeros_like(x)
        assert torch.equal(space.retract(x, zero), x)
        assert torch.equal(space.step(x, zero, 0.7), x)


@every_space
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_step_of_any_length_ends_in_the_space(space: Geometry, width: int, dtype: torch.dtype) -> None:
    s = Sample(space, width, 5, dtype)
    for length in (1e2, 1e6):
        for end in (space.exp(s.x, length * s.v), space.retract(s.x, length * s.v)):
            assert space.contains(end).all()
            assert space.contains(space.exp(end, space.project_tangent(end, length * s.v))).all()


@every_space
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_no_point(space: Geometry, width: int, value: float) -> None:
    x = Sample(space, width, 6).x
    x[3, -1] = value
    assert space.contains(x).tolist() == [True, True, True, False, True, True, True]
    if math.isnan(value):
        assert space.project(x)[3].isnan().any()


@pytest.mark.parametrize("space", [Hyperboloid(0.5), Sphere(0.5)])
def test_what_lies_beside_the_space_is_no_point(space: Geometry) -> None:
    x = Sample(space, 4, 7).x
    assert not space.contains(1.0001 * x).any()
    assert not space.contains(-x).any() or isinstance(space, Sphere)


@every_space
def test_project_tangent_is_an_orthogonal_projection(space: Geometry, width: int) -> None:
    s = Sample(space, width, 8)
    drawn = torch.randn(s.shape, dtype=torch.float64, generator=s.generator)
    along = space.project_tangent(s.x, drawn)
    s.close(space.project_tangent(s.x, along), along, 1.0)
    # The gradient of a linear function f(x) = ⟨g, x⟩: its slope along v is ⟨g, v⟩ for every tangent vector.
    slope = (drawn * s.v).sum(-1, keepdim=True)
    s.close(space.inner(s.x, space.riemannian_gradient(s.x, drawn), s.v), slope)


@every_space
def test_components_are_what_an_optimiser_accumulates(space: Geometry, width: int) -> None:
    s = Sample(space, width, 9)
    found = space.component_inner(s.x, s.v)
    assert found.shape == (7, *space.component_shape((width,)))
    assert found.expand_as(s.v).shape == s.v.shape
    assert (found >= 0).all()
    parts = space.parts if isinstance(space, Product) else ((space, width),)
    start = 0
    for part, wide in parts:
        cut = slice(start, start + wide)
        x, v = s.x[:, cut], s.v[:, cut]
        if isinstance(part, Product):
            expected = part.component_inner(x, v)
        elif part.component_shape((wide,)) == (1,):
            expected = part.inner(x, v, v).expand_as(v)
        else:  # each element by itself
            alone = torch.diag_embed(v)
            expected = part.inner(x[:, None], alone, alone).squeeze(-1)
        s.close(found.expand_as(s.v)[:, cut], expected, size(space) ** 2)
        start += wide


@every_space
def test_points_are_drawn_around_the_origin(space: Geometry, width: int) -> None:
    origin = space.origin(width, torch.float64)
    assert space.contains(origin)
    scale = 1e-3 * size(space)
    drawn = space.random(torch.Generator().manual_seed(0), (500, width), scale, torch.float64)
    again = space.random(torch.Generator().manual_seed(0), (500, width), scale, torch.float64)
    # The same draws from the same seed.
    assert torch.equal(drawn, again)
    assert space.contains(drawn).all()
    offsets = (drawn - origin) / scale
    assert offsets.mean(0).abs().max() < 0.2
    spread = offsets.std(0)
    free = spread > 0.1  # all but the components that the constraint fixes
    assert (spread[free] - 1).abs().max() < 0.15
    assert int((~free).sum()) == constraints(space)
    assert space.random(torch.Generator(), (2, 3, width), scale).dtype == torch.float32


def constraints(space: Geometry) -> int:
    if isinstance(space, Product):
        return sum(constraints(part) for part, _ in space.parts)
    return int(isinstance(space, Sphere | Hyperboloid))


def test_the_ball_and_euclid_draw_as_they_always_did() -> None:
    """Bit for bit: the numbers of one draw from the generator, in order, which runs of old versions started from."""
    expected = torch.zeros(6, 4).normal_(0.0, 1e-3, generator=torch.Generator().manual_seed(2))
    for space in (PoincareBall(), Euclidean()):
        assert torch.equal(space.random(torch.Generator().manual_seed(2), (6, 4), 1e-3), expected)


def test_a_product_is_its_parts() -> None:
    s = Sample(MIXED, MIXED.width, 10)
    x, y, v = (MIXED.split(row) for row in (s.x, s.y, s.v))
    spaces = [space for space, _ in MIXED.parts]
    whole: dict[str, tuple[Tensor, Callable[[Geometry, Tensor, Tensor, Tensor], Tensor]]] = {
        "exp": (MIXED.exp(s.x, s.v), lambda space, x, y, v: space.exp(x, v)),
        "log": (MIXED.log(s.x, s.y), lambda space, x, y, v: space.log(x, y)),
        "retract": (MIXED.retract(s.x, s.v), lambda space, x, y, v: space.retract(x, v)),
        "transport": (MIXED.transport(s.x, s.y, s.v), lambda space, x, y, v: space.transport(x, y, v)),
        "project": (MIXED.project(3 * s.x), lambda space, x, y, v: space.project(3 * x)),
        "tangent": (MIXED.project_tangent(s.x, s.y), lambda space, x, y, v: space.project_tangent(x, y)),
        "gradient": (MIXED.riemannian_gradient(s.x, s.y), lambda space, x, y, v: space.riemannian_gradient(x, y)),
        "step": (MIXED.step(s.x, s.y, 0.3), lambda space, x, y, v: space.step(x, y, 0.3)),
    }
    for found, function in whole.values():
        s.close(found, torch.cat([function(*each) for each in zip(spaces, x, y, v, strict=True)], -1))
    squares = [space.squared_distance(a, b) for space, a, b in zip(spaces, x, y, strict=True)]
    s.close(MIXED.squared_distance(s.x, s.y), sum(squares, torch.zeros(7, dtype=torch.float64)))
    inners = [space.inner(a, w, w) for space, a, w in zip(spaces, x, v, strict=True)]
    s.close(MIXED.inner(s.x, s.v, s.v), sum(inners, torch.zeros(7, 1, dtype=torch.float64)))
    broken = s.x.clone()
    broken[2, 0] = 5.0  # outside the first part's ball
    assert MIXED.contains(broken).tolist() == [True, True, False, True, True, True, True]
    assert not MIXED.is_flat
    assert Product(((Euclidean(), 2), (Euclidean(), 3))).is_flat


@every_space
def test_where_coordinates_are_free_any_short_vector_is_a_point(space: Geometry, width: int) -> None:
    vectors = 0.1 * size(space) * torch.randn(20, width, generator=torch.Generator().manual_seed(3))
    assert space.has_free_coordinates == isinstance(space, MobiusGeometry)
    if space.has_free_coordinates:
        assert space.contains(vectors).all()
        assert torch.equal(space.project(vectors), vectors)
    assert Product(((Euclidean(), 2), (Euclidean(), 3))).has_free_coordinates


def test_a_product_refuses_what_does_not_fit() -> None:
    with pytest.raises(ConfigError, match=r"at least 1 wide, and has: none"):
        Product(())
    with pytest.raises(ConfigError, match=r"poincare: 2, sphere: 0"):
        Product(((PoincareBall(), 2), (Sphere(), 0)))
    for call in (
        lambda: MIXED.project(torch.zeros(3, 11)),
        lambda: MIXED.origin(13),
        lambda: MIXED.random(torch.Generator(), (3, 11), 0.1),
    ):
        with pytest.raises(ConfigError, match=r"has 12 numbers, and this one 1[13]"):
            call()


@pytest.mark.parametrize("space", [Hyperboloid, Sphere])
@pytest.mark.parametrize("c", [0.0, -1.0, math.nan, math.inf])
def test_a_curvature_that_is_not_positive_is_refused(space: type[Hyperboloid] | type[Sphere], c: float) -> None:
    with pytest.raises(ConfigError, match="positive"):
        space(c=c)


@every_space
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_at_the_origin_and_where_points_meet(
    space: Geometry, width: int, dtype: torch.dtype
) -> None:
    origin = space.origin(width, dtype)
    near = space.random(torch.Generator().manual_seed(1), (width,), 1e-12 * size(space), dtype)
    far = Sample(space, width, 11, dtype).x[0]
    places = [origin, near, far, space.project(-far)]
    functions: list[Callable[[Tensor, Tensor], Tensor]] = [
        space.distance,
        space.squared_distance,
        space.log,
        lambda x, y: space.exp(x, space.log(x.detach(), y)),
        lambda x, y: space.transport(x, y, space.project_tangent(x, y)),
        lambda x, y: space.inner(x, y, y),
    ]
    x, y = (torch.stack(points) for points in zip(*itertools.product(places, places), strict=True))
    for function in functions:
        inputs = (x.clone().requires_grad_(), y.clone().requires_grad_())
        value = function(*inputs)
        gradients = torch.autograd.grad(value.sum(), inputs, allow_unused=True)
        for found in (value, *gradients):
            assert found is None or found.isfinite().all(), found
