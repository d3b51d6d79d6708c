"""Points of the sphere as height and side, which keep their digits near the origin."""

from __future__ import annotations

import mpmath
import pytest
import torch
from torch.nn.functional import pad

from murp.geometry import Sphere, sphere

C = 0.7
# Up to almost half a great circle, π/√c = 3.755.
LENGTHS = (1e-12, 1e-4, 0.3, 1.5, 3.0, 3.7)


def vectors(length: float, seed: int, n: int = 20, d: int = 4) -> torch.Tensor:
    drawn = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return length * drawn / torch.linalg.vector_norm(drawn, dim=-1, keepdim=True)


def point(v: torch.Tensor) -> torch.Tensor:
    return Sphere(C).exp(Sphere(C).origin(v.shape[-1] + 1, v.dtype), pad(v, (1, 0)))


def whole(height: torch.Tensor, side: torch.Tensor) -> torch.Tensor:
    return torch.cat([1 - height, side], -1) / C**0.5


@pytest.mark.parametrize("length", LENGTHS)
def test_height_and_side_are_those_of_the_point(length: float) -> None:
    v = vectors(length, 0)
    torch.testing.assert_close(whole(*sphere.from_tangent(v, c=C)), point(v), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("length", [0.0, *LENGTHS])
def test_the_way_back_to_the_tangent_space(length: float) -> None:
    v = vectors(length, 0)
    back = sphere.to_tangent(*sphere.from_tangent(v, c=C), c=C)
    torch.testing.assert_close(back, v, rtol=1e-12, atol=0)


@pytest.mark.parametrize("far", LENGTHS)
@pytest.mark.parametrize("length", LENGTHS)
def test_a_translation_keeps_distances_and_takes_the_origin_to_its_point(length: float, far: float) -> None:
    v, w, by = vectors(length, 0), vectors(0.9, 1), vectors(far, 2)
    moved, other = (whole(*sphere.translate_tangent(x, by, c=C)) for x in (v, w))
    space = Sphere(C)
    assert space.contains(moved).all()
    torch.testing.assert_close(space.distance(moved, other), space.distance(point(v), point(w)), rtol=1e-7, atol=1e-7)
    origin = whole(*sphere.translate_tangent(torch.zeros_like(v), by, c=C))
    torch.testing.assert_close(origin, point(by), rtol=1e-14, atol=1e-14)


def test_a_translation_along_its_own_line_adds_lengths() -> None:
    v = vectors(0.4, 0)
    moved = whole(*sphere.translate_tangent(v, 2 * v, c=C))
    torch.testing.assert_close(moved, point(3 * v), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("length", LENGTHS)
def test_the_distance_from_products_is_the_distance(length: float) -> None:
    """To the rounding of the products: 10⁻¹⁵ in d², but near the antipode, where the slope of arcsin grows."""
    v, w = vectors(length, 0), vectors(0.8, 1)
    height, side = sphere.from_tangent(v, c=C)
    found = sphere.squared_distance_to_tangent_from_products(height[:, 0], (w * w).sum(-1), (side * w).sum(-1), C)
    torch.testing.assert_close(found, Sphere(C).squared_distance(point(v), point(w)), rtol=1e-12, atol=1e-14)


def test_small_distances_keep_their_digits_in_float32() -> None:
    """Points 10⁻³ from the origin: a cosine would have two digits of their distance, the height has six."""
    v, w = (vectors(1e-3, seed).float() for seed in (0, 1))
    height, side = sphere.from_tangent(v, c=C)
    found = sphere.squared_distance_to_tangent_from_products(height[:, 0], (w * w).sum(-1), (side * w).sum(-1), C)
    with mpmath.workdps(30):
        for i in range(len(v)):
            apart = mpmath.norm(
                [mpmath.mpf(a) - mpmath.mpf(b) for a, b in zip(v[i].tolist(), w[i].tolist(), strict=True)]
            )
            assert float(found[i]) == pytest.approx(float(apart**2), rel=1e-5)  # flat to 10⁻⁶ of itself here


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_where_points_coincide_and_at_antipodes(dtype: torch.dtype) -> None:
    v = vectors(1.0, 0).to(dtype).requires_grad_()
    for factor in (0.0, 1.0, 1 - torch.pi / C**0.5):  # the origin, v itself, its antipode
        w = factor * v.detach()
        height, side = sphere.from_tangent(w.requires_grad_(), c=C)
        vv = (v * v).sum(-1)
        squared = sphere.squared_distance_to_tangent_from_products(height[:, 0], vv, (side * v).sum(-1), C)
        assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(squared.sum(), (v, w)))
