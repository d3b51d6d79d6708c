"""The sphere of curvature c, {x ∈ ℝᵈ⁺¹ : |x| = 1/√c}: pure functions, and the space that offers them.

The last axis of a tensor is the vector axis, the leading ones broadcast. Tangent vectors at x are those orthogonal to
x, and their inner product is Euclid's. No two points are farther apart than π/√c. From a point to its antipode many
shortest paths lead: there log and transport are finite, and no more than that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from murp.geometry.poincare import Curvature, squared_norm
from murp.geometry.spaces import Embedded

ON_IT = 64  # roundings that a point may lie off the sphere
KEPT = 16  # roundings within which project leaves a point alone


def _norm(x: Tensor) -> Tensor:
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm


def _dot(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1, keepdim=True)


def project(x: Tensor, *, c: float) -> Tensor:
    """x/(√c|x|), the nearest point. A point of the sphere to 16 eps is returned bit for bit; NaN stays NaN.

    All points are equally near 0: it becomes the origin (1/√c, 0, …, 0).
    """
    norm = _norm(x)
    zero = norm == 0
    radius = math.sqrt(c) * torch.where(zero, 1.0, norm)
    on_it = ((radius - 1).abs() <= KEPT * torch.finfo(x.dtype).eps) & ~zero
    first = torch.arange(x.shape[-1], device=x.device) == 0
    origin = first.to(x.dtype) / math.sqrt(c)
    return torch.where(zero, origin, x * torch.where(on_it, 1.0, 1 / radius))


def project_tangent(x: Tensor, v: Tensor, *, c: float) -> Tensor:
    """v - c⟨x,v⟩x: the part of v that is orthogonal to x. It is the Riemannian gradient of a Euclidean one, too."""
    return v - c * _dot(x, v) * x


def contains(x: Tensor, *, c: float) -> Tensor:
    """Whether √c|x| = 1 to 64 eps, last axis dropped; what is NaN or infinite lies nowhere."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float64)
    return (math.sqrt(c) * norm - 1).abs() <= ON_IT * torch.finfo(x.dtype).eps


def _angle(x: Tensor, y: Tensor) -> Tensor:
    """θ = √c d(x, y) = 2 arctan(|x - y|/|x + y|), last axis kept with size 1: accurate from 0 to π."""
    return 2 * torch.atan2(_norm(x - y), _norm(x + y))


def distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y) = arccos(c⟨x,y⟩)/√c = 2/√c arctan(|x - y|/|x + y|). The last axis is dropped.

    The second form is computed. At x = y and at antipodes the gradient is 0 (a subgradient).
    """
    return _angle(x, y).squeeze(-1) / math.sqrt(c)


def squared_distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y)², smooth at x = y. The last axis is dropped."""
    return distance(x, y, c=c).square()


def exp(x: Tensor, v: Tensor, *, c: float) -> Tensor:
    """exp_x(v) = cos(r) x + sin(r)/r v with r = √c|v|: follow the great circle from x with velocity v."""
    # From √eps/4 down sin(r)/r and cos(r) are 1 to rounding, and the clamp makes the derivatives 0.
    r = (c * squared_norm(v)).clamp(min=torch.finfo(x.dtype).eps / 16).sqrt()
    return project(torch.cos(r) * x + torch.sin(r) / r * v, c=c)


def log(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """log_x(y) = θ/sin(θ) (y - cos(θ) x) with θ = √c d(x, y): the inverse of exp_x for |v| < π/√c.

    With w = y - x we have y - cos(θ) x = w + c|w|²/2 x, which keeps its digits where y is near x.
    """
    w = y - x
    # sin θ = 2 sin(θ/2) cos(θ/2) = c/2 |x - y||x + y|
    sine = c / 2 * _norm(w) * _norm(x + y)
    small = sine < torch.finfo(x.dtype).eps ** 0.5 / 4
    scale = torch.where(small, 1.0, _angle(x, y) / torch.where(small, 1.0, sine))
    return scale * project_tangent(x, w + c / 2 * squared_norm(w) * x, c=c)


def transport(x: Tensor, y: Tensor, v: Tensor, *, c: float) -> Tensor:
    """v - c⟨y,v⟩/(1 + c⟨x,y⟩) (x + y): parallel transport of v from x to y along the great circle between them.

    Computed with ⟨y,v⟩ = ⟨y - x,v⟩ and 1 + c⟨x,y⟩ = c|x + y|²/2.
    """
    middle = x + y
    square = squared_norm(middle).clamp(min=torch.finfo(x.dtype).eps ** 2 / c)
    return v - 2 * _dot(y - x, v) / square * middle


# Points x of the sphere near its origin o = (1/√c, 0, …, 0), as pairs that keep their digits there: the height
# h = 1 - √c x₀ and the side s = √c (x₁, …, x_d). So √c x = (1 - h, s). c may be a tensor that broadcasts.


def from_tangent(v: Tensor, *, c: Curvature) -> tuple[Tensor, Tensor]:
    """Height 2 sin²(r/2) (…, 1) and side √c sin(r)/r v (…, d) of exp_o(v), r = √c|v|, for any vector v (…, d)."""
    h, ratio = _height_and_ratio(squared_norm(v), c)
    return h, ratio * v


def _height_and_ratio(vv: Tensor, c: Curvature) -> tuple[Tensor, Tensor]:
    """1 - cos(r) and √c sin(r)/r of |v|², r = √c|v|."""
    r = (c * vv).clamp(min=torch.finfo(vv.dtype).eps / 16).sqrt()  # as in exp
    return 2 * torch.sin(r / 2).square(), c**0.5 * torch.sin(r) / r


def to_tangent(height: Tensor, side: Tensor, *, c: Curvature) -> Tensor:
    """log_o of a point by its height (…, 1) and side (…, d): the inverse of :func:`from_tangent` for |v| < π/√c."""
    length = _norm(side)
    ratio = torch.where(length > 0, torch.atan2(length, 1 - height) / length, 1.0)
    return ratio * side / c**0.5


def translate_tangent(v: Tensor, by: Tensor, *, c: Curvature) -> tuple[Tensor, Tensor]:
    """Height and side of exp_o(v) after the rotation that takes o to exp_o(r) along the great circle; v and r (…, d).

    With h, s of v and g, t of r the side is s + (1 - h) t - 2 sin²(q/2) ⟨s,r⟩ r/|r|², q = √c|r|, and the height is
    h + g - h g + ⟨s,t⟩: one less the cosine of the angle between exp_o(v) and exp_o(-r).
    """
    (h, s), (g, t) = from_tangent(v, c=c), from_tangent(by, c=c)
    half = (c * squared_norm(by)).clamp(min=torch.finfo(v.dtype).eps / 16).sqrt() / 2
    share = c / 2 * (torch.sin(half) / half).square()  # 2 sin²(q/2)/|r|²
    return h + g - h * g + _dot(s, t), s + (1 - h) * t - share * _dot(s, by) * by


def squared_distance_to_tangent_from_products(h: Tensor, vv: Tensor, sv: Tensor, c: Curvature) -> Tensor:
    """d(x, exp_o(v))² from the height h of x, |v|² and ⟨s,v⟩ with the side s of x, all of which broadcast.

        sin²(√c d/2) = (h + k - h k - √c sin(r)/r ⟨s,v⟩)/2 with k = 2 sin²(r/2), r = √c|v|

    Its slope grows without bound towards the antipode, where the shortest way turns round: it ends at √eps from there.
    """
    kind = torch.finfo(sv.dtype)
    k, ratio = _height_and_ratio(vv, c)
    square = (h + k - h * k - ratio * sv) / 2
    # Neither the root nor its derivative is taken at 0, nor the slope of arcsin at 1.
    square = square.clamp(min=-kind.tiny, max=1 - kind.eps) + 2 * kind.tiny
    return 4 * torch.asin(square.sqrt()).square() / c


@dataclass(frozen=True)
class Sphere(Embedded):
    """The sphere of radius 1/√c about 0, of curvature c."""

    c: float = 1.0
    name: ClassVar[str] = "sphere"
    in_words: ClassVar[str] = "sphere"

    @property
    def curvature(self) -> float:
        return self.c

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return exp(x, v, c=self.c)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return log(x, y, c=self.c)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return transport(x, y, v, c=self.c)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return _dot(u, v)

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return project_tangent(x, gradient, c=self.c)

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
