"""The hyperboloid, another model of the same space, and the way to it from the ball and from its tangent space.

The hyperboloid of curvature -c is {x ∈ ℝᵈ⁺¹ : ⟨x,x⟩ = -1/c, x₀ > 0} with ⟨x,y⟩ = -x₀y₀ + x₁y₁ + … + x_d y_d. The
time component stands first. The last axis of a tensor is the vector axis, the leading ones broadcast.

All maps below keep distances. Give them float64: a point at distance s from the origin has components of the size of
e^√c s, while the ball holds the same point in its distance from the rim.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from murp.geometry import poincare


def inner(x: Tensor, y: Tensor) -> Tensor:
    """⟨x,y⟩ = -x₀y₀ + Σ xᵢyᵢ. The last axis is dropped.

    -c⟨x,y⟩ = cosh(√c d(x, y)): the larger ⟨x,y⟩, the nearer. An index for the largest ordinary inner product therefore
    finds the nearest points exactly, if the query's time component is negated.
    """
    return (x[..., 1:] * y[..., 1:]).sum(-1) - x[..., 0] * y[..., 0]


def distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y) = arcosh(-c⟨x,y⟩)/√c = 2/√c asinh(√c⟨x - y,x - y⟩/2). The last axis is dropped.

    The second form is computed; it keeps small distances.
    """
    w = x - y
    return 2 / math.sqrt(c) * torch.asinh((c * inner(w, w)).clamp(min=0).sqrt() / 2)


def from_ball(x: Tensor, *, c: float) -> Tensor:
    """((1 + c|x|²)/√c, 2x) / (1 - c|x|²): from the Poincaré ball [..., d] to the hyperboloid [..., d + 1]."""
    gap = poincare.gap(x, c=c)
    return torch.cat([(2 - gap) / math.sqrt(c), 2 * x], -1) / gap


def to_ball(x: Tensor, *, c: float) -> Tensor:
    """(x₁ … x_d) / (1 + √c x₀): the inverse of :func:`from_ball`."""
    return poincare.project(x[..., 1:] / (1 + math.sqrt(c) * x[..., :1]), c=c)


def from_tangent(v: Tensor, *, c: float) -> Tensor:
    """(cosh(2√c|v|), sinh(2√c|v|) v/|v|)/√c: from the tangent space at the origin, as the ball writes it.

    The ball's metric at its origin is 4 times Euclid's, so that exp₀(v) lies at the distance 2|v|:
    from_tangent(v) = from_ball(exp₀(v)).
    """
    length = torch.linalg.vector_norm(v, dim=-1, keepdim=True)
    s = 2 * math.sqrt(c) * length
    # sinh(s)/s is 1 to rounding long before s is so small that it could not divide.
    small = s < 1e-150
    ratio = torch.where(small, 1.0, torch.sinh(s) / torch.where(small, 1.0, s))
    return torch.cat([torch.cosh(s) / math.sqrt(c), 2 * ratio * v], -1)


def to_tangent(x: Tensor, *, c: float) -> Tensor:
    """asinh(√c|x'|)/(2√c) x'/|x'| with x' = (x₁ … x_d): the inverse of :func:`from_tangent`."""
    space = x[..., 1:]
    r = math.sqrt(c) * torch.linalg.vector_norm(space, dim=-1, keepdim=True)
    small = r < 1e-150
    ratio = torch.where(small, 1.0, torch.asinh(r) / torch.where(small, 1.0, r))
    return ratio / 2 * space
