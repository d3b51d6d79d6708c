"""The Poincaré ball of curvature -c: pure functions, and the space that offers them.

The ball is {x : c|x|² < 1}. The last axis of a tensor is the vector axis, the leading ones
broadcast. A function that returns a point returns one inside the ball.

c > 0 is a number, or a tensor where the curvature is learned. Functions of vectors [..., d] take a tensor that
broadcasts as [..., 1], a curvature for each vector, also those that drop the last axis of their result. Functions of
numbers (``…_from_products``, ``…_of_sinh``, ``exp0_scale``) take one that broadcasts with these numbers: (B, 1) for B
queries and their K candidates (B, K). A tensor without axes fits both. Gradients flow into c.

No formula below subtracts nearly equal numbers where the inputs do not force it to, so distances
do not saturate near the boundary. Two identities carry this, with w = x + y:

    1 + 2c⟨x,y⟩ + c²|x|²|y|²  =  c|w|² + (1 - c|x|²)(1 - c|y|²)  =: D
    1 - c|x ⊕ y|²             =  (1 - c|x|²)(1 - c|y|²) / D

The first is a sum of positive terms, the second a closed form of a gap that cannot be had from
x ⊕ y itself once that is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from murp.geometry.ball_distance import query_coefficients
from murp.geometry.spaces import Curved, normal

Curvature = float | Tensor


def _root(c: Curvature) -> Curvature:
    return c.sqrt() if isinstance(c, Tensor) else math.sqrt(c)


def limit_radius(dtype: torch.dtype) -> float:
    """The largest √c|x| a point may have: 1 - 8 eps."""
    return 1 - 8 * torch.finfo(dtype).eps


def set_back_radius(dtype: torch.dtype) -> float:
    """√c|x| of a point that was farther out than that: 1 - 12 eps.

    The difference absorbs the rounding of norm and rescaling, so that a projected point is never
    projected again.
    """
    return 1 - 12 * torch.finfo(dtype).eps


def squared_norm(x: Tensor) -> Tensor:
    """|x|², last axis kept with size 1."""
    return (x * x).sum(-1, keepdim=True)


def gap(x: Tensor, *, c: Curvature) -> Tensor:
    """1 - c|x|² = (1 - √c|x|)(1 + √c|x|), last axis kept with size 1: positive in the ball, 0 on its rim."""
    radius = _root(c) * _norm(x)
    return (1 - radius) * (1 + radius)


def _norm(x: Tensor) -> Tensor:
    """|x|, last axis kept with size 1; its gradient at 0 is 0."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm


def conformal_factor(x: Tensor, *, c: Curvature) -> Tensor:
    """λ_x = 2 / (1 - c|x|²), last axis kept with size 1: the metric at x is λ_x² times Euclid's."""
    return 2 / gap(x, c=c)


def project(x: Tensor, *, c: Curvature) -> Tensor:
    """Set a point that rounding or a step put outside back inside the ball.

    The largest norm is (1 - 8 eps)/√c. A point within it is returned bit for bit, a farther one keeps its
    direction; project(project(x)) = project(x); NaN stays NaN.
    """
    return x * _projection_factor(x, c)


def _projection_factor(x: Tensor, c: Curvature) -> Tensor:
    norm = _norm(x)
    limit = limit_radius(x.dtype) / _root(c)
    # The clamp keeps 1/norm, whose gradient flows through `where` as 0 · ∞, away from norm = 0.
    set_back = set_back_radius(x.dtype) / _root(c) / norm.clamp(min=limit)
    return torch.where(norm > limit, set_back, 1.0)


def contains(x: Tensor, *, c: Curvature) -> Tensor:
    """Whether c|x|² < 1, last axis dropped; what is NaN or infinite lies nowhere."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float64)
    return (c * norm.square() < 1).squeeze(-1)


def mobius_add(x: Tensor, y: Tensor, *, c: Curvature) -> Tensor:
    """Möbius addition (eq. 2).

        x ⊕ y = [(1 + 2c⟨x,y⟩ + c|y|²) x + (1 - c|x|²) y] / (1 + 2c⟨x,y⟩ + c²|x|²|y|²)
              = [(1 - c|x|²) w + c|w|² x] / [c|w|² + (1 - c|x|²)(1 - c|y|²)],   w = x + y

    The second line is what is computed: it stays accurate when y is close to -x.
    Laws: 0 ⊕ x = x ⊕ 0 = x, (-x) ⊕ x = 0, (-x) ⊕ (x ⊕ y) = y; neither commutative nor associative.
    """
    gap_x = gap(x, c=c)
    w = x + y
    cww = c * squared_norm(w)
    return project((gap_x * w + cww * x) / (cww + gap_x * gap(y, c=c)), c=c)


def mobius_add_coefficients(xx: Tensor, yy: Tensor, xy: Tensor, *, c: Curvature) -> tuple[Tensor, Tensor, Tensor]:
    """(α, β, D) with x ⊕ y = (α x + β y)/D, from |x|², |y|² and ⟨x,y⟩, which broadcast.

        α = 1 + 2c⟨x,y⟩ + c|y|²,   β = 1 - c|x|²,   D = 1 + 2c⟨x,y⟩ + c²|x|²|y|²

    Good to rounding of the products: where y is close to -x prefer :func:`mobius_add`.
    """
    return 1 + 2 * c * xy + c * yy, 1 - c * xx, 1 + 2 * c * xy + c * c * xx * yy


def recentre(x: Tensor, centre: Tensor, *, c: Curvature) -> Tensor:
    """(-centre) ⊕ x: the isometry of the ball that moves `centre` to the origin."""
    return mobius_add(-centre, x, c=c)


def exp0(v: Tensor, *, c: Curvature) -> Tensor:
    """exp₀(v) = tanh(√c|v|) v / (√c|v|): from the tangent space at the origin to the ball."""
    return v * exp0_scale(squared_norm(v), c=c)


def exp0_scale(vv: Tensor, *, c: Curvature) -> Tensor:
    """tanh(√c|v|) / (√c|v|) from |v|²: the number κ with exp₀(v) = κ v."""
    r = _radius(vv, c)
    return torch.tanh(r).clamp(max=set_back_radius(vv.dtype)) / r


def log0(x: Tensor, *, c: Curvature) -> Tensor:
    """log₀(x) = artanh(√c|x|) x / (√c|x|): the inverse of exp₀."""
    r = _radius(squared_norm(x), c)
    return x * (torch.atanh(r) / r)


def _radius(xx: Tensor, c: Curvature) -> Tensor:
    """√c|x| from |x|² for use in tanh(r)/r and artanh(r)/r.

    Kept above √eps/4, where both quotients are 1 to rounding: at x = 0 they have the value 1 and, because the
    clamp stops the gradient, the derivative 0.
    """
    eps = torch.finfo(xx.dtype).eps
    return (c * xx).clamp(min=eps / 16).sqrt()


def exp(x: Tensor, v: Tensor, *, c: Curvature) -> Tensor:
    """exp_x(v) = x ⊕ tanh(√c λ_x|v|/2) v / (√c|v|): follow the geodesic from x with velocity v."""
    return mobius_add(x, exp0(v / gap(x, c=c), c=c), c=c)


def log(x: Tensor, y: Tensor, *, c: Curvature) -> Tensor:
    """log_x(y) = 2/(√c λ_x) artanh(√c|u|) u/|u| with u = (-x) ⊕ y: the inverse of exp_x.

    With w = y - x, D = c|w|² + (1 - c|x|²)(1 - c|y|²) and n = (1 - c|x|²) w - c|w|² x we have u = n/D,
    |n| = |w| √D and artanh(√c|u|) = asinh(√z), z = c|w|² / ((1 - c|x|²)(1 - c|y|²)), hence

        log_x(y) = (1 - c|x|²) · asinh(√z)/√z · n / √(D (1 - c|x|²)(1 - c|y|²)),

    smooth at y = x, where it is 0 and its derivative by y the identity.
    """
    gap_x = gap(x, c=c)
    gaps = gap_x * gap(y, c=c)
    w = y - x
    cww = c * squared_norm(w)
    root_z = (cww / gaps).clamp(min=torch.finfo(x.dtype).eps / 16).sqrt()
    scale = gap_x * torch.asinh(root_z) / root_z / ((cww + gaps) * gaps).sqrt()
    return scale * (gap_x * w - cww * x)


def mobius_diagonal(m: Tensor, x: Tensor, *, c: Curvature) -> Tensor:
    """M ⊗ x = exp₀(M log₀(x)) for the diagonal matrix M = diag(m) (eq. 3).

    Laws: 1 ⊗ x = x, 0 ⊗ x = 0, (M M') ⊗ x = M ⊗ (M' ⊗ x).
    """
    return exp0(m * log0(x, c=c), c=c)


def distance(x: Tensor, y: Tensor, *, c: Curvature) -> Tensor:
    """d(x, y) = 2/√c artanh(√c|(-x) ⊕ y|) = 2/√c asinh(√c|x - y| / √((1 - c|x|²)(1 - c|y|²))).

    The first form is eq. 1, the second is computed. The last axis is dropped. At x = y the gradient is 0 (a
    subgradient); :func:`squared_distance` is smooth there.
    """
    root_z = _root(c) * _norm(x - y) / (gap(x, c=c) * gap(y, c=c)).sqrt()
    return (2 / _root(c) * torch.asinh(root_z)).squeeze(-1)


def squared_distance(x: Tensor, y: Tensor, *, c: Curvature) -> Tensor:
    """d(x, y)², smooth everywhere, x = y included. The last axis is dropped."""
    z = c * squared_norm(x - y) / (gap(x, c=c) * gap(y, c=c))
    return squared_distance_of_sinh(z, c=c).squeeze(-1)


def squared_distance_of_sinh(z: Tensor, *, c: Curvature) -> Tensor:
    """d² from z = sinh²(√c d/2) ≥ 0, that is (4/c) asinh(√z)², smooth: its derivative at z = 0 is 4/c.

    Computed as log(1 + 2(z + √(z² + z)))²/c, by the double angle, since asinh is slow and log1p is not. A
    negative z, which only rounding makes, counts as 0. Twice the smallest normal number is added, far below the
    rounding of any z that matters, so that neither the root nor its derivative is taken at 0.
    """
    # Of the clamp's own slope at its bound PyTorch's releases differ: 0 is to be above it.
    tiny = torch.finfo(z.dtype).tiny
    z = z.clamp(min=-tiny).add_(2 * tiny)
    root = torch.addcmul(z, z, z).sqrt_()
    square = torch.log1p((z + root).mul_(2)).square()
    return square / c if isinstance(c, Tensor) else square.mul_(1 / c)


def squared_distance_from_products(xx: Tensor, yy: Tensor, xy: Tensor, *, c: Curvature) -> Tensor:
    """d(x, y)² from |x|², |y|² and ⟨x,y⟩, which broadcast.

        sinh²(√c d/2) = c(|x|² - 2⟨x,y⟩ + |y|²) / ((1 - c|x|²)(1 - c|y|²))

    Good to rounding of the products: where x is very near y prefer :func:`squared_distance`.
    """
    z = c * (xx + yy - 2 * xy) / ((1 - c * xx) * (1 - c * yy))
    return squared_distance_of_sinh(z, c=c)


def squared_distance_to_sum_from_products(
    xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor, *, c: Curvature
) -> Tensor:
    """d(x, v ⊕ r)² from the six inner products of x, v and r, which broadcast.

    v ⊕ r = (α v + β r)/D with α, β and D of :func:`mobius_add_coefficients`; |v ⊕ r|² = |v + r|²/D and
    1 - c|v ⊕ r|² = (1 - c|v|²)(1 - c|r|²)/D turn z = sinh²(√c d/2) into

        z = c [D|x|² - 2(α⟨x,v⟩ + β⟨x,r⟩) + |v + r|²] / ((1 - c|x|²)(1 - c|v|²)(1 - c|r|²)).

    The bracket is computed sorted by ⟨x,v⟩ and ⟨v,r⟩, the only two products that are matrices when one query
    (x, r) meets all entities v, as q₀ + q₁|v|² + q₂⟨x,v⟩ + ⟨v,r⟩(q₃ + q₄⟨x,v⟩) with the numbers of
    :func:`murp.geometry.ball_distance.query_coefficients`.
    """
    base, of_vv, of_xv, of_vr, of_both, scale = query_coefficients(xx, rr, xr, c)
    bracket = torch.addcmul(base, vv, of_vv)
    bracket = torch.addcmul(bracket, xv, of_xv)
    bracket = torch.addcmul(bracket, vr, _plus_multiple(of_vr, of_both, xv))
    z = bracket * scale / (1 - c * vv)
    return squared_distance_of_sinh(z, c=c)


def _plus_multiple(x: Tensor, factor: Curvature, y: Tensor) -> Tensor:
    return torch.addcmul(x, factor, y) if isinstance(factor, Tensor) else torch.add(x, y, alpha=factor)


def squared_distance_to_tangent_from_products(xx: Tensor, vv: Tensor, xv: Tensor, c: Curvature) -> Tensor:
    """d(x, exp₀(v))² from |x|², |v|² and ⟨x,v⟩, which broadcast: x is in the ball, v in the tangent space at 0.

    With r = √c|v|, S = sinh r and 1 - c|exp₀(v)|² = 1/cosh² r, which is never formed by a subtraction,

        z = sinh²(√c d/2) = c [|x|² cosh² r - 2⟨x,v⟩ cosh r S/r + |v|² (S/r)²] / (1 - c|x|²)
                          = [c|x|² + (1 + c|x|²) S² - 2c⟨x,v⟩ cosh r S/r] / (1 - c|x|²).

    Nothing ends at the rim: v may be as long as you like. Where r exceeds R = 1 + ½ log(8/eps), farther out than any x
    whose 1 - c|x|² is not 0, z could overflow. There h = r - R is taken out: with z' = e^(-2h) z,

        √c d = 2h + log(e^(-2h) + 2(z' + √(z'² + e^(-2h) z'))),

    and sinh(r) e^(-h) = sinh R to rounding, as cosh. For r ≤ R we have h = 0 and :func:`squared_distance_of_sinh`.
    """
    kind = torch.finfo(xv.dtype)
    largest = 1 + math.log(8 / kind.eps) / 2
    cvv = c * vv
    # Where a look at the numbers is cheap: with h = 0 everywhere a third of the work has no effect on any bit.
    looks = not torch.compiler.is_compiling() and xv.device.type == "cpu"
    if looks and bool((cvv <= largest**2).all()):
        z, _ = _sinh_to_tangent(xx, vv, xv, c, math.inf)
        root = (z * (z + 1)).sqrt_()
        return torch.log1p((z + root).mul_(2)).square() / c
    z, rr = _sinh_to_tangent(xx, vv, xv, c, largest)
    twice_h = 2 * (rr.sqrt() - largest).clamp(min=0)
    root = (z * (z + torch.exp(-twice_h))).sqrt_()
    length = twice_h + torch.log1p(torch.expm1(-twice_h) + 2 * (z + root))
    return length.square() / c


def _sinh_to_tangent(xx: Tensor, vv: Tensor, xv: Tensor, c: Curvature, largest: float) -> tuple[Tensor, Tensor]:
    """z' and r², with S and cosh of r or, where it is less, of ``largest``."""
    kind = torch.finfo(xv.dtype)
    cvv = c * vv
    rr = cvv.clamp(min=kind.eps / 16)  # as in _radius
    r = rr.sqrt()
    ratio = torch.sinh(r.clamp(max=largest) if math.isfinite(largest) else r) / r
    square = cvv * ratio.square()
    w = ratio * (1 + square).sqrt()
    # Sorted by what candidates decide, so that few operations are on tensors as large as all scores.
    gap_x = 1 - c * xx
    z = torch.addcmul(c * xx / gap_x, (1 + c * xx) / gap_x, square)
    z = torch.addcmul(z, 2 * c / gap_x, xv * w, value=-1)
    # As in squared_distance_of_sinh, neither the root nor its derivative is taken at 0.
    return z.clamp(min=-kind.tiny).add_(2 * kind.tiny), rr


def squared_norm_of_sum_from_products(vv: Tensor, rr: Tensor, vr: Tensor, *, c: Curvature) -> Tensor:
    """|v ⊕ r|² = |v + r|² / (c|v + r|² + (1 - c|v|²)(1 - c|r|²)) from |v|², |r|² and ⟨v,r⟩."""
    ww = (vv + 2 * vr + rr).clamp(min=0)
    return ww / (c * ww + (1 - c * vv) * (1 - c * rr))


def riemannian_gradient(x: Tensor, euclidean_gradient: Tensor, *, c: Curvature) -> Tensor:
    """grad f = ∇f / λ_x² = ((1 - c|x|²)/2)² ∇f."""
    return euclidean_gradient * (gap(x, c=c) / 2).square()


def inner(x: Tensor, u: Tensor, v: Tensor, *, c: Curvature) -> Tensor:
    """λ_x² ⟨u,v⟩: the inner product of tangent vectors at x, last axis kept with size 1."""
    return conformal_factor(x, c=c).square() * (u * v).sum(-1, keepdim=True)


def transport(x: Tensor, y: Tensor, v: Tensor, *, c: Curvature) -> Tensor:
    """(λ_x/λ_y) gyr[y, -x] v: parallel transport of v from x to y along the geodesic between them.

    The gyration is gyr[a, b] v = -(a ⊕ b) ⊕ (a ⊕ (b ⊕ v)), a rotation. With w = y - x and
    D = c|w|² + (1 - c|x|²)(1 - c|y|²) it is computed in a form in which y near x costs no digits:

        gyr[y, -x] v = v + 2/D · [α w + β x],
        α = c(c(2⟨x,w⟩⟨x,v⟩ - |x|²⟨w,v⟩) - (1 - c|x|²)⟨x,v⟩),   β = c((1 - c|x|²)⟨w,v⟩ - c|w|²⟨x,v⟩).

    Laws: it keeps inner products, transport(y, x, ·) is its inverse, and transport(x, x, v) = v.
    """
    gap_x, gap_y = gap(x, c=c), gap(y, c=c)
    w = y - x
    xv, wv, xw = ((a * b).sum(-1, keepdim=True) for a, b in ((x, v), (w, v), (x, w)))
    ww = squared_norm(w)
    alpha = c * (2 * xw * xv - squared_norm(x) * wv) - gap_x * xv
    beta = gap_x * wv - c * ww * xv
    turned = v + 2 * c / (c * ww + gap_x * gap_y) * (alpha * w + beta * x)
    return gap_y / gap_x * turned


def step(x: Tensor, gradient: Tensor, lr: float | Tensor, *, c: Curvature) -> Tensor:
    """project(exp_x(-lr ∇f/λ_x²)): one Riemannian SGD step on the rows of x. Not meant to be differentiated.

    The velocity is a multiple of g = ∇f, so the result is a combination of x and g with scalars for each row.
    With p = 1 - c|x|² and h = √c lr p|g|/4 the summand of exp_x is y = -τg, τ = (lr p/4) tanh(h)/h, and

        x ⊕ y = x + (p/D)(t² x - τg),   t = tanh(h),   q = cτ⟨x,g⟩,   D = (1 - q)² + (c|x|²t² - q²).

    Both terms of D are non-negative, the second by Cauchy and Schwarz. A zero gradient returns x unchanged.
    A tensor c must broadcast to x [..., d].
    """
    root_c = _root(c)
    radius = root_c * _norm(x)
    p = (1 - radius) * (1 + radius)
    length = _norm(gradient)
    t = torch.tanh(p * length * (root_c / 4 * lr))
    tau = t / (root_c * length + torch.finfo(x.dtype).tiny)
    product: Tensor = torch.linalg.vecdot(x, gradient).unsqueeze(-1)
    q = c * tau * product
    scale = p / ((1 - q).square() + ((radius * t).square() - q * q).clamp(min=0))
    moved = (x * (1 + scale * t * t)).addcmul_(gradient, scale * tau, value=-1)
    return moved.mul_(_projection_factor(moved, c))


@dataclass(frozen=True)
class PoincareBall(Curved):
    """The ball {x : c|x|² < 1} of curvature -c, as in the paper (there c = 1)."""

    c: float = 1.0
    name: ClassVar[str] = "poincare"
    in_words: ClassVar[str] = "Poincaré ball"
    has_free_coordinates: ClassVar[bool] = True

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return mobius_add(x, y, c=self.c)

    def stretch(self, m: Tensor, x: Tensor) -> Tensor:
        return mobius_diagonal(m, x, c=self.c)

    def exp0(self, v: Tensor) -> Tensor:
        return exp0(v, c=self.c)

    def exp0_scale(self, vv: Tensor) -> Tensor:
        return exp0_scale(vv, c=self.c)

    def log0(self, x: Tensor) -> Tensor:
        return log0(x, c=self.c)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return exp(x, v, c=self.c)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return log(x, y, c=self.c)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return project(x + v, c=self.c)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return transport(x, y, v, c=self.c)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return inner(x, u, v, c=self.c)

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        return distance(x, y, c=self.c)

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        return squared_distance(x, y, c=self.c)

    def conformal_factor(self, x: Tensor) -> Tensor:
        return conformal_factor(x, c=self.c)

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return riemannian_gradient(x, gradient, c=self.c)

    def contains(self, x: Tensor) -> Tensor:
        return contains(x, c=self.c)

    def project(self, x: Tensor) -> Tensor:
        return project(x, c=self.c)

    def project_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return v

    def recentre(self, x: Tensor, centre: Tensor) -> Tensor:
        return recentre(x, centre, c=self.c)

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        return step(x, gradient, lr, c=self.c)

    def origin(self, dim: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
        return torch.zeros(dim, dtype=dtype, device=device)

    def random(
        self, generator: torch.Generator, shape: tuple[int, ...], scale: float, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        return project(normal(generator, shape, scale, dtype), c=self.c)

    def squared_distance_from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return squared_distance_from_products(xx, yy, xy, c=self.c)

    def squared_distance_to_sum_from_products(
        self, xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
    ) -> Tensor:
        return squared_distance_to_sum_from_products(xx, vv, rr, xv, xr, vr, c=self.c)

    def squared_norm_of_sum_from_products(self, vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
        return squared_norm_of_sum_from_products(vv, rr, vr, c=self.c)
