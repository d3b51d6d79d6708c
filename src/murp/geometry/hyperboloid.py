"""The hyperboloid, another model of hyperbolic space: pure functions, and the space that offers them.

The hyperboloid of curvature -c is {x ∈ ℝᵈ⁺¹ : ⟨x,x⟩ = -1/c, x₀ > 0} with ⟨x,y⟩ = -x₀y₀ + x₁y₁ + … + x_d y_d. The
time component stands first; x' = (x₁ … x_d) are the others. The last axis of a tensor is the vector axis, the leading
ones broadcast.

A point is fixed by x', and a tangent vector v at x by v', since ⟨x,v⟩ = 0: x₀ = √(1/c + |x'|²), v₀ = ⟨x',v'⟩/x₀. Far
out, where components have the size of e^√c s at distance s, subtracting squares of time components would cost all
digits of a distance or a length. So neither time component is subtracted below: lengths and distances come from the
parts of v' or x' - y' along and across the direction to the origin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from murp.geometry import poincare
from murp.geometry.poincare import squared_norm
from murp.geometry.spaces import Embedded

ON_IT = 64  # roundings that a point may lie off the hyperboloid


def limit_radius(dtype: torch.dtype) -> float:
    """The largest √c|x'| a point may have: 1/(8 eps), as far out as the ball's own limit."""
    return 1 / (8 * torch.finfo(dtype).eps)


def inner(x: Tensor, y: Tensor) -> Tensor:
    """⟨x,y⟩ = -x₀y₀ + Σ xᵢyᵢ. The last axis is dropped.

    -c⟨x,y⟩ = cosh(√c d(x, y)): the larger ⟨x,y⟩, the nearer. An index for the largest ordinary inner product therefore
    finds the nearest points exactly, if the query's time component is negated.
    """
    return (x[..., 1:] * y[..., 1:]).sum(-1) - x[..., 0] * y[..., 0]


def metric(x: Tensor, u: Tensor, v: Tensor, *, c: float) -> Tensor:
    """⟨u,v⟩ of tangent vectors at x, last axis kept with size 1: ⟨u⊥,v⊥⟩ + u_r v_r/(1 + c|x'|²).

    u_r is the part of u' along x', u⊥ what is left of u'.
    """
    return _metric(x[..., 1:], u[..., 1:], v[..., 1:], c)


def _metric(x: Tensor, u: Tensor, v: Tensor, c: float) -> Tensor:
    direction = _direction(x)
    along_u, along_v = _dot(direction, u), _dot(direction, v)
    across = _dot(u - along_u * direction, v - along_v * direction)
    return across + along_u * along_v / (1 + c * squared_norm(x))


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


def _direction(x: Tensor) -> Tensor:
    """x/|x|, and 0 for x = 0, with the gradient 0 there."""
    length: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    there = length > 0
    return torch.where(there, x / torch.where(there, length, 1.0), 0.0)


def _tangent(x: Tensor, space: Tensor) -> Tensor:
    """The tangent vector v at x with v' = ``space``."""
    return torch.cat([_dot(x[..., 1:], space) / x[..., :1], space], -1)


def half_sinh_square(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """z = sinh²(√c d(x, y)/2) = c⟨x - y,x - y⟩/4 ≥ 0, last axis kept with size 1.

    With w = x' - y', m = x' + y', T = x₀ + y₀ we have x₀ - y₀ = ⟨w,m⟩/T, so 4z/c = |w|² - ⟨w,m⟩²/T². If ⟨x',y'⟩ > 0
    the difference may lose all digits. There, with w_r the part of w along m and w⊥ the rest, the identity
    T² - |m|² = 4/c + 4z/c gives

        z = (c|w⊥|²/4 + w_r²/T²) / (1 - w_r²/T²).
    """
    x, y, total = x[..., 1:], y[..., 1:], x[..., :1] + y[..., :1]
    w, m = x - y, x + y
    # Where the product underflows both points are at the origin to rounding, and either form will do.
    beside = c * _dot(x, y) > 1024 * torch.finfo(x.dtype).tiny
    share = torch.where(beside, _dot(w, m), 0.0) / torch.where(beside, squared_norm(m), 1.0)
    along = share.square() * squared_norm(m) / total.square()
    near = (c / 4 * squared_norm(w - share * m) + along) / (1 - along)
    apart = c / 4 * (squared_norm(w) - (_dot(w, m) / total).square())
    return torch.where(beside, near, apart)


def distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y) = arcosh(-c⟨x,y⟩)/√c = 2/√c asinh(√z) with z of :func:`half_sinh_square`. The last axis is dropped.

    At x = y the gradient is 0 (a subgradient); :func:`squared_distance` is smooth there.
    """
    z = half_sinh_square(x, y, c=c).squeeze(-1)
    apart = z > 0
    return 2 / math.sqrt(c) * torch.where(apart, torch.asinh(torch.where(apart, z, 1.0).sqrt()), 0.0)


def squared_distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y)², smooth everywhere, x = y included. The last axis is dropped."""
    return poincare.squared_distance_of_sinh(half_sinh_square(x, y, c=c).squeeze(-1), c=c)


def project(x: Tensor, *, c: float) -> Tensor:
    """The point with the same x', whose time component is √(1/c + |x'|²).

    Where √c|x'| exceeds 1/(8 eps), x' is set back to 1/(12 eps). project(project(x)) = project(x) bit for bit; NaN
    stays NaN.
    """
    space = x[..., 1:]
    norm: Tensor = torch.linalg.vector_norm(space, dim=-1, keepdim=True)
    limit = limit_radius(x.dtype) / math.sqrt(c)
    space = space * torch.where(norm > limit, limit * 8 / 12 / norm.clamp(min=limit), 1.0)
    return torch.cat([(1 / c + squared_norm(space)).sqrt(), space], -1)


def project_tangent(x: Tensor, v: Tensor, *, c: float) -> Tensor:
    """v + c⟨x,v⟩x: the part of v that is orthogonal to x, for ⟨·,·⟩."""
    return _tangent(x, v[..., 1:] + c * inner(x, v)[..., None] * x[..., 1:])


def contains(x: Tensor, *, c: float) -> Tensor:
    """Whether x₀ = √(1/c + |x'|²) to 64 eps, last axis dropped; what is NaN or infinite lies nowhere."""
    exact = x.double()
    time = (1 / c + squared_norm(exact[..., 1:]).squeeze(-1)).sqrt()
    return ((exact[..., 0] - time).abs() <= ON_IT * torch.finfo(x.dtype).eps * time) & x.isfinite().all(-1)


def riemannian_gradient(x: Tensor, euclidean_gradient: Tensor, *, c: float) -> Tensor:
    """grad f = g + c⟨x,g⟩x with g = (-∂₀f, ∂₁f, … ∂_d f): the gradient for ⟨·,·⟩, projected to the tangent space."""
    g = torch.cat([-euclidean_gradient[..., :1], euclidean_gradient[..., 1:]], -1)
    return project_tangent(x, g, c=c)


def exp(x: Tensor, v: Tensor, *, c: float) -> Tensor:
    """exp_x(v) = cosh(r) x + sinh(r)/r v with r = √c|v|: follow the geodesic from x with velocity v.

    The way is cut at the distance from the origin to the farthest point allowed, so that nothing overflows.
    """
    eps = torch.finfo(x.dtype).eps
    farthest = math.log(2 * limit_radius(x.dtype))
    r = (c * metric(x, v, v, c=c)).clamp(min=eps / 16).sqrt()
    cut = r.clamp(max=farthest)
    return project(torch.cosh(cut) * x + torch.sinh(cut) / r * v, c=c)


def log(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """log_x(y) = θ/sinh(θ) (y - cosh(θ) x) with θ = √c d(x, y): the inverse of exp_x.

    With w = y - x and z = sinh²(θ/2) it is asinh(√z)/√(z(1 + z)) (w - 2z x), smooth at y = x.
    """
    z = half_sinh_square(x, y, c=c)
    root = z.clamp(min=torch.finfo(x.dtype).eps / 16).sqrt()
    scale = torch.asinh(root) / root / (1 + z).sqrt()
    return _tangent(x, scale * _towards(x, y, z))


def _towards(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """w' - 2z x': the spatial part of y - cosh(θ) x, a tangent vector at x."""
    return y[..., 1:] - x[..., 1:] - 2 * z * x[..., 1:]


def transport(x: Tensor, y: Tensor, v: Tensor, *, c: float) -> Tensor:
    """v + c⟨y,v⟩/(1 - c⟨x,y⟩) (x + y): parallel transport of v from x to y along the geodesic between them.

    Computed with ⟨y,v⟩ = ⟨y - cosh(θ) x,v⟩, a product of tangent vectors, and 1 - c⟨x,y⟩ = 2(1 + z).
    """
    z = half_sinh_square(x, y, c=c)
    product = _metric(x[..., 1:], _towards(x, y, z), v[..., 1:], c)
    return _tangent(y, v[..., 1:] + c * product / (2 * (1 + z)) * (x + y)[..., 1:])


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


@dataclass(frozen=True)
class Hyperboloid(Embedded):
    """The points [x₀, x'] with ⟨x,x⟩ = -1/c and x₀ > 0: the space of the ball of curvature -c, and its distances."""

    c: float = 1.0
    name: ClassVar[str] = "hyperboloid"
    in_words: ClassVar[str] = "hyperboloid"

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return exp(x, v, c=self.c)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return log(x, y, c=self.c)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return transport(x, y, v, c=self.c)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return metric(x, u, v, c=self.c)

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return riemannian_gradient(x, gradient, c=self.c)

    def project(self, x: Tensor) -> Tensor:
        return project(x, c=self.c)

    def project_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return project_tangent(x, v, c=self.c)

    def contains(self, x: Tensor) -> Tensor:
        return contains(x, c=self.c)

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        return distance(x, y, c=self.c)

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        return squared_distance(x, y, c=self.c)
