"""Euclidean space under the names of :mod:`murp.geometry.poincare`: pure functions, and the space that offers them.

It is not quite the limit c → 0 of the ball, whose metric there is 4 times Euclid's (λ = 2): distances of the
ball tend to 2|x - y| and its Riemannian gradients to ∇f/4, while sums, exponentials, logarithms and stretches
tend to those below.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from murp.geometry.spaces import normal


def contains(x: Tensor) -> Tensor:
    """Whether every component is finite, last axis dropped."""
    return x.isfinite().all(-1)


def distance(x: Tensor, y: Tensor) -> Tensor:
    """|x - y|, last axis dropped; the gradient at x = y is 0 (a subgradient)."""
    norm: Tensor = torch.linalg.vector_norm(x - y, dim=-1)
    return norm


def squared_distance(x: Tensor, y: Tensor) -> Tensor:
    """|x - y|², last axis dropped."""
    return (x - y).square().sum(-1)


def conformal_factor(x: Tensor) -> Tensor:
    """1, last axis kept with size 1."""
    return torch.ones_like(x[..., :1])


def squared_distance_from_products(xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
    """|x - y|² = |x|² - 2⟨x,y⟩ + |y|², not below 0."""
    return (xx + yy - 2 * xy).clamp(min=0)


def squared_distance_to_sum_from_products(
    xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
) -> Tensor:
    """|x - v - r|² = |x - r|² + |v|² + 2⟨v,r⟩ - 2⟨x,v⟩, not below 0."""
    return ((xx - 2 * xr + rr) + vv + 2 * (vr - xv)).clamp(min=0)


def squared_norm_of_sum_from_products(vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
    """|v + r|² = |v|² + 2⟨v,r⟩ + |r|², not below 0."""
    return (vv + 2 * vr + rr).clamp(min=0)


@dataclass(frozen=True)
class Euclidean:
    """Flat space."""

    name: ClassVar[str] = "euclidean"
    is_flat: ClassVar[bool] = True
    has_free_coordinates: ClassVar[bool] = True
    c: ClassVar[float] = 0.0
    curvature: ClassVar[float] = 0.0

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def stretch(self, m: Tensor, x: Tensor) -> Tensor:
        return m * x

    def exp0(self, v: Tensor) -> Tensor:
        return v

    def exp0_scale(self, vv: Tensor) -> Tensor:
        return torch.ones_like(vv)

    def log0(self, x: Tensor) -> Tensor:
        return x

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return y - x

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return v

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return (u * v).sum(-1, keepdim=True)

    def component_inner(self, x: Tensor, v: Tensor) -> Tensor:
        return v * v

    def component_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        return distance(x, y)

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        return squared_distance(x, y)

    def conformal_factor(self, x: Tensor) -> Tensor:
        return conformal_factor(x)

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return gradient

    def contains(self, x: Tensor) -> Tensor:
        return contains(x)

    def project(self, x: Tensor) -> Tensor:
        return x

    def project_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v

    def recentre(self, x: Tensor, centre: Tensor) -> Tensor:
        return x - centre

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        return x - lr * gradient

    def origin(self, dim: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
        return torch.zeros(dim, dtype=dtype, device=device)

    def random(
        self, generator: torch.Generator, shape: tuple[int, ...], scale: float, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        return normal(generator, shape, scale, dtype)

    def squared_distance_from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return squared_distance_from_products(xx, yy, xy)

    def squared_distance_to_sum_from_products(
        self, xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
    ) -> Tensor:
        return squared_distance_to_sum_from_products(xx, vv, rr, xv, xr, vr)

    def squared_norm_of_sum_from_products(self, vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
        return squared_norm_of_sum_from_products(vv, rr, vr)
