"""The Poincaré ball of curvature -c, as pure functions.

The ball is {x : c|x|² < 1}. The last axis of a tensor is the vector axis, the leading ones
broadcast, and c > 0 is a number. A function that returns a point returns one inside the ball.

No formula below subtracts nearly equal numbers where the inputs do not force it to, so distances
do not saturate near the boundary. Two identities carry this, with w = x + y:

    1 + 2c⟨x,y⟩ + c²|x|²|y|²  =  c|w|² + (1 - c|x|²)(1 - c|y|²)  =: D
    1 - c|x ⊕ y|²             =  (1 - c|x|²)(1 - c|y|²) / D

The first is a sum of positive terms, the second a closed form of a gap that cannot be had from
x ⊕ y itself once that is rounded.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


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


def gap(x: Tensor, *, c: float) -> Tensor:
    """1 - c|x|² = (1 - √c|x|)(1 + √c|x|), last axis kept with size 1: positive in the ball, 0 on its rim."""
    radius = math.sqrt(c) * _norm(x)
    return (1 - radius) * (1 + radius)


def _norm(x: Tensor) -> Tensor:
    """|x|, last axis kept with size 1; its gradient at 0 is 0."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return norm


def conformal_factor(x: Tensor, *, c: float) -> Tensor:
    """λ_x = 2 / (1 - c|x|²), last axis kept with size 1: the metric at x is λ_x² times Euclid's."""
    return 2 / gap(x, c=c)


def project(x: Tensor, *, c: float) -> Tensor:
    """Set a point that rounding or a step put outside back inside the ball.

    The largest norm is (1 - 8 eps)/√c. A point within it is returned bit for bit, a farther one keeps its
    direction; project(project(x)) = project(x); NaN stays NaN.
    """
    return x * _projection_factor(x, c)


def _projection_factor(x: Tensor, c: float) -> Tensor:
    norm = _norm(x)
    limit = limit_radius(x.dtype) / math.sqrt(c)
    # The clamp keeps 1/norm, whose gradient flows through `where` as 0 · ∞, away from norm = 0.
    set_back = set_back_radius(x.dtype) / math.sqrt(c) / norm.clamp(min=limit)
    return torch.where(norm > limit, set_back, 1.0)


def contains(x: Tensor, *, c: float) -> Tensor:
    """Whether c|x|² < 1, last axis dropped; what is NaN or infinite lies nowhere."""
    norm: Tensor = torch.linalg.vector_norm(x, dim=-1, dtype=torch.float64)
    return c * norm.square() < 1


def mobius_add(x: Tensor, y: Tensor, *, c: float) -> Tensor:
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


def recentre(x: Tensor, centre: Tensor, *, c: float) -> Tensor:
    """(-centre) ⊕ x: the isometry of the ball that moves `centre` to the origin."""
    return mobius_add(-centre, x, c=c)


def exp0(v: Tensor, *, c: float) -> Tensor:
    """exp₀(v) = tanh(√c|v|) v / (√c|v|): from the tangent space at the origin to the ball."""
    return v * exp0_scale(squared_norm(v), c=c)


def exp0_scale(vv: Tensor, *, c: float) -> Tensor:
    """tanh(√c|v|) / (√c|v|) from |v|²: the number κ with exp₀(v) = κ v."""
    r = _radius(vv, c)
    return torch.tanh(r).clamp(max=set_back_radius(vv.dtype)) / r


def log0(x: Tensor, *, c: float) -> Tensor:
    """log₀(x) = artanh(√c|x|) x / (√c|x|): the inverse of exp₀."""
    r = _radius(squared_norm(x), c)
    return x * (torch.atanh(r) / r)


def _radius(xx: Tensor, c: float) -> Tensor:
    """√c|x| from |x|² for use in tanh(r)/r and artanh(r)/r.

    Kept above √eps/4, where both quotients are 1 to rounding: at x = 0 they have the value 1 and, because the
    clamp stops the gradient, the derivative 0.
    """
    eps = torch.finfo(xx.dtype).eps
    return (c * xx).clamp(min=eps / 16).sqrt()


def exp(x: Tensor, v: Tensor, *, c: float) -> Tensor:
    """exp_x(v) = x ⊕ tanh(√c λ_x|v|/2) v / (√c|v|): follow the geodesic from x with velocity v."""
    return mobius_add(x, exp0(v / gap(x, c=c), c=c), c=c)


def log(x: Tensor, y: Tensor, *, c: float) -> Tensor:
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


def mobius_diagonal(m: Tensor, x: Tensor, *, c: float) -> Tensor:
    """M ⊗ x = exp₀(M log₀(x)) for the diagonal matrix M = diag(m) (eq. 3).

    Laws: 1 ⊗ x = x, 0 ⊗ x = 0, (M M') ⊗ x = M ⊗ (M' ⊗ x).
    """
    return exp0(m * log0(x, c=c), c=c)


def distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y) = 2/√c artanh(√c|(-x) ⊕ y|) = 2/√c asinh(√c|x - y| / √((1 - c|x|²)(1 - c|y|²))).

    The first form is eq. 1, the second is computed. The last axis is dropped. At x = y the gradient is 0 (a
    subgradient); :func:`squared_distance` is smooth there.
    """
    root_z = math.sqrt(c) * _norm(x - y) / (gap(x, c=c) * gap(y, c=c)).sqrt()
    return 2 / math.sqrt(c) * torch.asinh(root_z).squeeze(-1)


def squared_distance(x: Tensor, y: Tensor, *, c: float) -> Tensor:
    """d(x, y)², smooth everywhere, x = y included. The last axis is dropped."""
    z = c * squared_norm(x - y) / (gap(x, c=c) * gap(y, c=c))
    return squared_distance_of_sinh(z.squeeze(-1), c=c)


def squared_distance_of_sinh(z: Tensor, *, c: float) -> Tensor:
    """d² from z = sinh²(√c d/2) ≥ 0, that is (4/c) asinh(√z)², smooth: its derivative at z = 0 is 4/c.

    Computed as log(1 + 2(z + √(z² + z)))²/c, by the double angle, since asinh is slow and log1p is not. A
    negative z, which only rounding makes, counts as 0. Twice the smallest normal number is added, far below the
    rounding of any z that matters, so that neither the root nor its derivative is taken at 0.
    """
    # Of the clamp's own slope at its bound PyTorch's releases differ: 0 is to be above it.
    tiny = torch.finfo(z.dtype).tiny
    z = z.clamp(min=-tiny).add_(2 * tiny)
    root = torch.addcmul(z, z, z).sqrt_()
    return torch.log1p((z + root).mul_(2)).square().mul_(1 / c)


def squared_distance_from_products(xx: Tensor, yy: Tensor, xy: Tensor, *, c: float) -> Tensor:
    """d(x, y)² from |x|², |y|² and ⟨x,y⟩, which broadcast.

        sinh²(√c d/2) = c(|x|² - 2⟨x,y⟩ + |y|²) / ((1 - c|x|²)(1 - c|y|²))

    Good to rounding of the products: where x is very near y prefer :func:`squared_distance`.
    """
    z = c * (xx + yy - 2 * xy) / ((1 - c * xx) * (1 - c * yy))
    return squared_distance_of_sinh(z, c=c)


def squared_distance_to_sum_from_products(
    xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor, *, c: float
) -> Tensor:
    """d(x, v ⊕ r)² from the six inner products of x, v and r, which broadcast.

    v ⊕ r = (α v + β r)/D with α = 1 + 2c⟨v,r⟩ + c|r|², β = 1 - c|v|², D = 1 + 2c⟨v,r⟩ + c²|v|²|r|²;
    |v ⊕ r|² = |v + r|²/D and 1 - c|v ⊕ r|² = (1 - c|v|²)(1 - c|r|²)/D turn z = sinh²(√c d/2) into

        z = c [D|x|² - 2(α⟨x,v⟩ + β⟨x,r⟩) + |v + r|²] / ((1 - c|x|²)(1 - c|v|²)(1 - c|r|²)).

    The bracket is computed sorted by ⟨x,v⟩ and ⟨v,r⟩, the only two products that are matrices when one query
    (x, r) meets all entities v:

        2⟨v,r⟩(1 + c|x|² - 2c⟨x,v⟩) - 2(1 + c|r|²)⟨x,v⟩ + |v|²(1 + 2c⟨x,r⟩ + c²|x|²|r|²) + |x - r|².
    """
    bracket = torch.addcmul(xx - 2 * xr + rr, vv, 1 + 2 * c * xr + c * c * xx * rr)
    bracket = torch.addcmul(bracket, xv, 1 + c * rr, value=-2)
    bracket = torch.addcmul(bracket, vr, torch.add(1 + c * xx, xv, alpha=-2 * c), value=2)
    z = bracket * (c / ((1 - c * xx) * (1 - c * rr))) / (1 - c * vv)
    return squared_distance_of_sinh(z, c=c)


def squared_norm_of_sum_from_products(vv: Tensor, rr: Tensor, vr: Tensor, *, c: float) -> Tensor:
    """|v ⊕ r|² = |v + r|² / (c|v + r|² + (1 - c|v|²)(1 - c|r|²)) from |v|², |r|² and ⟨v,r⟩."""
    ww = (vv + 2 * vr + rr).clamp(min=0)
    return ww / (c * ww + (1 - c * vv) * (1 - c * rr))


def riemannian_gradient(x: Tensor, euclidean_gradient: Tensor, *, c: float) -> Tensor:
    """grad f = ∇f / λ_x² = ((1 - c|x|²)/2)² ∇f."""
    return euclidean_gradient * (gap(x, c=c) / 2).square()


def step(x: Tensor, gradient: Tensor, lr: float | Tensor, *, c: float) -> Tensor:
    """project(exp_x(-lr ∇f/λ_x²)): one Riemannian SGD step on the rows of x. Not meant to be differentiated.

    The velocity is a multiple of g = ∇f, so the result is a combination of x and g with scalars for each row.
    With p = 1 - c|x|² and h = √c lr p|g|/4 the summand of exp_x is y = -τg, τ = (lr p/4) tanh(h)/h, and

        x ⊕ y = x + (p/D)(t² x - τg),   t = tanh(h),   q = cτ⟨x,g⟩,   D = (1 - q)² + (c|x|²t² - q²).

    Both terms of D are non-negative, the second by Cauchy and Schwarz. A zero gradient returns x unchanged.
    """
    root_c = math.sqrt(c)
    radius = root_c * _norm(x)
    p = (1 - radius) * (1 + radius)
    length = _norm(gradient)
    t = torch.tanh(p * length * (root_c / 4 * lr))
    tau = t / (root_c * length + torch.finfo(x.dtype).tiny)
    inner: Tensor = torch.linalg.vecdot(x, gradient).unsqueeze(-1)
    q = c * tau * inner
    scale = p / ((1 - q).square() + ((radius * t).square() - q * q).clamp(min=0))
    moved = (x * (1 + scale * t * t)).addcmul_(gradient, scale * tau, value=-1)
    return moved.mul_(_projection_factor(moved, c))
