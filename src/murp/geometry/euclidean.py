"""Euclidean space under the names of :mod:`murp.geometry.poincare`, as pure functions.

It is not quite the limit c → 0 of the ball, whose metric there is 4 times Euclid's (λ = 2): distances of the
ball tend to 2|x - y| and its Riemannian gradients to ∇f/4, while sums, exponentials, logarithms and stretches
tend to those below.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
