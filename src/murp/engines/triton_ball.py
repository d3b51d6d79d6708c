"""The functions of :mod:`murp.geometry.poincare` that a step on the ball needs, with their gradients, for Triton.

The radii near the boundary are given as their distance from 1 (LIMIT_GAP, SET_BACK_GAP): Triton may round a constant
to float32, and 1 - 8 eps of float64 would become 1. A derivative that is a quotient with a finite limit at 0 always
multiplies a term that vanishes there: it is enough to keep the divisor above 0.
"""

from __future__ import annotations

import triton
import triton.language as tl

from murp.engines.triton_math import (
    artanh_over,
    row_sum,
    row_sum3,
    small_artanh_over,
    sum2,
    sum3,
    tanh_over,
    widened,
)


@triton.jit
def exp0_scale(tau, SET_BACK_GAP: tl.constexpr):
    """tanh(τ)/τ and tanh'(τ) for τ ≥ 0; from the set-back radius on, tanh is constant."""
    far = tanh_over(tau)
    tanh = far * tau
    outside = 1.0 - tanh < SET_BACK_GAP
    inverse = 1.0 / tl.where(outside, tau, 1.0)
    slope = tl.where(outside, 0.0, 1.0 - tanh * tanh)
    return tl.where(outside, inverse - inverse * SET_BACK_GAP, far), slope


@triton.jit
def set_back(radius, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr):
    """What takes a point at √c|x| = ``radius`` back inside: 1 for one that is there already."""
    outside = 1.0 - radius < LIMIT_GAP
    inverse = 1.0 / tl.where(outside, radius, 1.0)
    return tl.where(outside, inverse - inverse * SET_BACK_GAP, 1.0)


@triton.jit
def stretch(m, x, C: tl.constexpr, SET_BACK_GAP: tl.constexpr):
    """M ⊗ x = κt, t = M log0(x) = ℓMx, of one vector; then what its gradient needs: t, ℓ, κ, tanh', √c|x|, √c|t|."""
    rho = tl.sqrt(C * tl.sum(x * x))
    near = artanh_over(rho)
    t = near * m * x
    tau = tl.sqrt(C * tl.sum(t * t))
    far, slope = exp0_scale(tau, SET_BACK_GAP)
    return far * t, t, near, far, slope, rho, tau


@triton.jit
def stretch_gradient(g, m, x, t, near, far, slope, rho, tau, C: tl.constexpr):
    """From the gradient by M ⊗ x those by m and by x: back through exp0, the matrix and log0."""
    tau2 = tl.maximum(tau * tau, 1e-24)
    gt = far * g + (slope - far) / tau2 * C * tl.sum(g * t) * t
    gm = gt * near * x
    gy = gt * m
    rho2 = tl.maximum(rho * rho, 1e-24)
    return gm, near * gy + (1.0 / (1.0 - rho * rho) - near) / rho2 * C * tl.sum(gy * x) * x


@triton.jit
def stretched_scale(vv, square, C: tl.constexpr, SET_BACK_GAP: tl.constexpr):
    """f with M ⊗ v = f·Mv from |v|² and |Mv|², and 2 ∂log f/∂|v|², 2 ∂log f/∂|Mv|²; for many v at once.

    f = κ(|t|) ℓ(|v|) with |t|² = ℓ²|Mv|². By κ'(τ)τ = tanh' - κ, and for ℓ alike with artanh' = 1/(1 - c|v|²),

        2 ∂log f/∂|Mv|² = (tanh'/κ - 1)/|Mv|²,      2 ∂log f/∂|v|² = tanh'/κ · (artanh'/ℓ - 1)/|v|².
    """
    near = artanh_over(tl.sqrt(C * vv))
    far, slope = exp0_scale(near * tl.sqrt(C * square), SET_BACK_GAP)
    bend = slope / far
    by_vv = bend * (1.0 / ((1.0 - C * vv) * near) - 1.0) / tl.maximum(vv, 1e-24)
    return far * near, by_vv, (bend - 1.0) / tl.maximum(square, 1e-24)


@triton.jit
def mobius_add(x, y, C: tl.constexpr, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr):
    """x ⊕ y of two vectors, set back into the ball; then what its gradient needs: D and the set-back factor."""
    w = x + y
    xx, yy, ww = sum3(x * x, y * y, w * w)
    x_radius, y_radius = tl.sqrt(C * xx), tl.sqrt(C * yy)
    x_gap = (1.0 - x_radius) * (1.0 + x_radius)
    below = C * ww + x_gap * ((1.0 - y_radius) * (1.0 + y_radius))
    total = (x_gap * w + C * ww * x) / below
    back = set_back(tl.sqrt(C * tl.sum(total * total)), LIMIT_GAP, SET_BACK_GAP)
    return total * back, below, back


@triton.jit
def mobius_add_gradient(g, x, y, total, below, back, C: tl.constexpr):
    """From the gradient by ``total`` = x ⊕ y those by x and by y.

    x ⊕ y = (αx + βy)/D with α = 1 + 2c⟨x,y⟩ + c|y|², β = 1 - c|x|², D = 1 + 2c⟨x,y⟩ + c²|x|²|y|². A point that was
    set back has lost its length: nothing along it goes through.
    """
    along, length = sum2(g * total, total * total)
    lost = back < 1.0
    g = back * (g - tl.where(lost, along / tl.where(lost, length, 1.0), 0.0) * total)
    by_below = tl.where(lost, 0.0, along)
    xx, yy, xy = sum3(x * x, y * y, x * y)
    gx, gy = sum2(g * x, g * y)
    by_xx = -C * (gy + C * yy * by_below) / below
    by_yy = C * (gx - C * xx * by_below) / below
    by_xy = 2.0 * C * (gx - by_below) / below
    alpha, beta = 1.0 + 2.0 * C * xy + C * yy, 1.0 - C * xx
    return alpha / below * g + 2.0 * by_xx * x + by_xy * y, beta / below * g + 2.0 * by_yy * y + by_xy * x


@triton.jit
def squared_norm_of_sum(vv, rr, vr, C: tl.constexpr):
    """|v ⊕ r|² = |w|²/D, D = c|w|² + (1 - c|v|²)(1 - c|r|²), w = v + r; and its derivatives by |v|², |r|², ⟨v,r⟩."""
    ww = vv + 2.0 * vr + rr
    some = ww >= 0
    ww = tl.maximum(ww, 0.0)
    v_gap, r_gap = 1.0 - C * vv, 1.0 - C * rr
    below = C * ww + v_gap * r_gap
    by_ww = tl.where(some, v_gap * r_gap / (below * below), 0.0)
    spread = C * ww / (below * below)
    return ww / below, by_ww + spread * r_gap, by_ww + spread * v_gap, 2.0 * by_ww


@triton.jit
def distance_from_sinh(z):
    """δ = √c d and δ/√(z(1+z)), half of ∂(δ²)/∂z, from z = sinh²(δ/2).

    δ = 2 artanh(q) with q = √(z/(1+z)); for larger q as the logarithm of a sum.
    """
    root = tl.sqrt(z)
    rest = tl.sqrt(1.0 + z)
    q = root / rest
    ratio = 2.0 * small_artanh_over(tl.minimum(q, 0.35)) / (1.0 + z)
    long = tl.log(1.0 + 2.0 * root * (root + rest))
    ratio = tl.where(q < 0.35, ratio, long / tl.where(q < 0.35, 1.0, root * rest))
    return ratio * root * rest, ratio


@triton.jit
def sinh_bracket(xx, rr, xr, xv, vr, vv, of_vv, C: tl.constexpr, TRANSLATE_OBJECT: tl.constexpr):
    """z = sinh²(√c d(x, v ⊕ r)/2) from inner products, but for the factor c/((1 - c|x|²)(1 - c|r|²)(1 - c|v|²)).

    Without a translation r is 0, and the products with it are not read.
    """
    if TRANSLATE_OBJECT:
        turn = 1.0 + C * xx - 2.0 * C * xv
        return 2.0 * vr * turn - 2.0 * (1.0 + C * rr) * xv + vv * of_vv + (xx - 2.0 * xr + rr)
    else:
        return xx + vv - 2.0 * xv


@triton.jit
def sinh_gradient(dz, z, scale, xx, rr, xv, vr, vv, of_vv, C: tl.constexpr, TRANSLATE_OBJECT: tl.constexpr):
    """From the gradient by z, the product of bracket and ``scale``, those by ⟨x,v⟩, ⟨v,r⟩, |x|², |r|², ⟨x,r⟩; and
    twice that by |v|²: the coefficient of v in the gradient by v, as the first two are those of x and r."""
    lift = dz * scale
    spread = dz * z
    if TRANSLATE_OBJECT:
        a = lift * (-4.0 * C * vr - 2.0 * (1.0 + C * rr))
        b = 2.0 * lift * (1.0 + C * xx - 2.0 * C * xv)
        w = 2.0 * (lift * of_vv + spread * C / (1.0 - C * vv))
        by_xx = lift * (2.0 * C * vr + C * C * rr * vv + 1.0) + spread * (C / (1.0 - C * xx))
        by_rr = lift * (-2.0 * C * xv + C * C * xx * vv + 1.0) + spread * (C / (1.0 - C * rr))
        by_xr = lift * (2.0 * C * vv - 2.0)
    else:
        a, b = -2.0 * lift, 0.0
        w = 2.0 * (lift + spread * C / (1.0 - C * vv))
        by_xx, by_rr, by_xr = lift + spread * (C / (1.0 - C * xx)), 0.0, 0.0
    return a, b, w, by_xx, by_rr, by_xr


@triton.jit
def ball_step(x, g, lr, C: tl.constexpr, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr):
    """murp.geometry.poincare.step on rows (n, J, W); a zero gradient returns them unchanged."""
    root: tl.constexpr = C**0.5
    xx, gg, xg = row_sum3(x * x, g * g, x * g)
    radius = tl.sqrt(C * xx)
    p = (1.0 - radius) * (1.0 + radius)
    h = root * 0.25 * lr * p * tl.sqrt(gg)
    over = tanh_over(h)
    t = over * h
    tau = 0.25 * lr * p * over
    q = C * tau * xg
    below = (1.0 - q) * (1.0 - q) + tl.maximum(radius * t * (radius * t) - q * q, 0.0)
    s = p / below
    moved = x * (1.0 + s * t * t)[:, None, None] - g * (s * tau)[:, None, None]
    far = root * tl.sqrt(row_sum(moved * moved))
    return moved * set_back(far, LIMIT_GAP, SET_BACK_GAP)[:, None, None]


@triton.jit
def rounded(rows, STORED: tl.constexpr, BALL: tl.constexpr, C: tl.constexpr, LIMIT_GAP: tl.constexpr):
    """murp.models.rounding.rounded on rows (n, J, W): in the format STORED of their table."""
    if rows.dtype == STORED:
        return rows
    else:
        near = rows.to(tl.float32).to(STORED)
        if BALL:
            back = widened(near, rows.dtype)
            beyond = 1.0 - tl.sqrt(C * row_sum(back * back)) < LIMIT_GAP
            away = beyond[:, None, None] & (tl.abs(back) > tl.abs(rows))
            # The pattern of bits one below is the next number towards 0.
            less = (near.to(tl.int16, bitcast=True) - 1).to(tl.int16).to(STORED, bitcast=True)
            near = tl.where(away, less, near)
        return near
