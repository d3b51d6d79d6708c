"""The parts of a training step of MuRP: score, hand-derived gradient, row update; see :mod:`murp.engines.numba_steps`.

The gradient of the loss by a candidate v is a combination of three vectors,

    ∂L/∂v = a·x + b·r + w·v,        x the moved subject, r the translation, v the candidate itself,

so that only its coefficients are stored.
"""

from __future__ import annotations

import math
from typing import Any

from murp.compiling import announce, kernel
from murp.engines.numba_math import (
    ball_step,
    link_relations,
    norm,
    norms_and_product,
    prefetch_row,
    softplus_and_sigmoid,
)
from murp.geometry import ball_distance
from murp.kernels.elementary import log1p
from murp.kernels.intrinsics import combine, fill, product, sums

announce(__name__, "the training step")

query_coefficients = kernel(ball_distance.query_coefficients)
with_candidate = sums(product(0, 2), product(1, 2), product(2, 2))


@kernel
def murp_positive(
    i: int, thread: int, positive: Any, false: Any, tables: Any, numbers: Any, space: Any, size: int
) -> None:
    """Score the candidates of positive i and write down the coefficients of all its gradients.

    A candidate whose ∂L/∂φ is below ``tiny`` moves nothing but biases: it would be lost in rounding, and on the way
    there its products are subnormal numbers, with which a processor takes a hundred times as long.
    """
    entity, stretch, translation, subject_bias, object_bias = tables
    _, c, _, set_back, tiny = numbers
    real, dim = entity.dtype.type, entity.shape[1]
    candidates = 1 + len(false)
    s, r, true = positive[0], positive[1], positive[2]
    h, m, rv, x = entity[s], stretch[r], translation[r], space.moved[i, :dim]
    root = math.sqrt(c)
    # x = exp0(m log0(h)) = far · near · m h
    (hh,) = norm((h,))
    rho = max(root * math.sqrt(hh), 1e-12)
    near = math.atanh(rho) / rho
    for j in range(dim):
        x[j] = m[j] * h[j]
    (tt,) = norm((x,))
    tau = max(root * near * math.sqrt(tt), 1e-12)
    tanh = math.tanh(tau)
    slope = 1.0 - tanh * tanh
    if tanh > set_back:
        tanh, slope = set_back, 0.0
    far = tanh / tau
    scale = real(far * near)
    for j in range(dim):
        x[j] *= scale
        space.r_copy[i, j] = rv[j]
    xx_, rr_, xr_ = norms_and_product((x, rv))
    xx, rr, xr = float(xx_), float(rr_), float(xr_)

    work = space.work[thread]
    xv, vr, vv, z = work[0], work[1], work[2], work[3]
    y, phi, soft, probability = work[4], work[5], work[6], work[7]
    for k in range(candidates):
        o = true if k == 0 else false[k - 1]
        xv[k], vr[k], vv[k] = with_candidate((x, rv, entity[o]))
        phi[k] = object_bias[o]
    gap_x, gap_r = 1.0 - c * xx, 1.0 - c * rr
    base, of_vv, of_xv, of_vr, of_both, fixed = query_coefficients(xx, rr, xr, c)
    for k in range(len(z)):
        bracket = vr[k] * (of_vr + of_both * xv[k]) + of_xv * xv[k] + vv[k] * of_vv + base
        z[k] = max(bracket * (fixed / (1.0 - c * vv[k])), 0.0)
        y[k] = 2.0 * (z[k] + math.sqrt(z[k] * z[k] + z[k]))
    scratch, bits = space.scratch[thread], space.bits[thread, 0]
    log1p(y, scratch[0], bits, space.form, soft)
    bias_of_subject = float(subject_bias[s])
    for k in range(len(z)):
        y[k] = soft[k]
        phi[k] = phi[k] + bias_of_subject - soft[k] * soft[k] / c
    softplus_and_sigmoid(phi, soft, probability, scratch, bits, space.form)

    weight = 1.0 / (size * candidates)
    loss, bias = -phi[0], 0.0
    probability[0] -= 1.0
    for k in range(candidates):
        loss += soft[k]
        bias += probability[k]
    space.losses[i], space.s_bias_gradient[i] = loss * weight, bias * weight
    # dL/dz = -g · 2 distance / (c √(z² + z)), and distance/√(z² + z) → 2 as z → 0
    of_x, of_r, of_self, of_phi = space.of_x[i], space.of_r[i], space.of_self[i], space.of_phi[i]
    lifts, slopes = soft, phi
    for k in range(len(z)):
        g = probability[k] * weight
        rest = math.sqrt(z[k] * z[k] + z[k])
        ratio = y[k] / rest if rest > 1e-150 else 2.0
        dz = -g * 2.0 / c * ratio if z[k] > 0.0 and abs(g) >= tiny else 0.0
        gap_v = 1.0 - c * vv[k]
        lift = dz * (fixed / gap_v)
        of_phi[k] = g
        of_x[k] = lift * (of_xv + of_both * vr[k])
        of_r[k] = lift * (of_vr + of_both * xv[k])
        of_self[k] = 2.0 * (lift * of_vv + dz * z[k] * c / gap_v)
        lifts[k], slopes[k] = lift, dz * z[k] * c
    sum_xx, sum_rr, sum_xr = 0.0, 0.0, 0.0
    for k in range(candidates):
        sum_xx += lifts[k] * (2.0 * c * vr[k] + c * c * rr * vv[k] + 1.0) + slopes[k] / gap_x
        sum_rr += lifts[k] * (-2.0 * c * xv[k] + c * c * xx * vv[k] + 1.0) + slopes[k] / gap_r
        sum_xr += lifts[k] * (2.0 * c * vv[k] - 2.0)

    gx, gr, gm = space.s_gradient[i, :dim], space.r_gradient[i, :dim], space.m_gradient[i, :dim]
    two_xx, two_rr, cross, one = real(2.0 * sum_xx), real(2.0 * sum_rr), real(sum_xr), real(1)
    for j in range(dim):
        gx[j] = two_xx * x[j] + cross * rv[j]
        gr[j] = two_rr * rv[j] + cross * x[j]
    for k in range(candidates):
        if lifts[k] != 0.0:
            v = entity[true if k == 0 else false[k - 1]]
            combine((gx, v), (one, of_x[k]))
            combine((gr, v), (one, of_r[k]))
    # Back through exp0 (t = near m h), then through the stretch, then through log0.
    inner = 0.0
    for j in range(dim):
        inner += gx[j] * m[j] * h[j]
    f, n = real(far), real(near)
    bend = real((slope - far) / (tau * tau) * c * near * inner * near)
    inner = 0.0
    for j in range(dim):
        gt = f * gx[j] + bend * m[j] * h[j]
        gm[j] = gt * n * h[j]
        gx[j] = gt * m[j]
        inner += gx[j] * h[j]
    combine((gx, h), (n, real((1.0 / (1.0 - rho * rho) - near) / (rho * rho) * c * inner)))


@kernel
def murp_rows(
    first: int, last: int, distinct: int, thread: int, tables: Any, numbers: Any, space: Any, shape: Any
) -> None:
    """Sum the gradients of each of the touched entities first … last - 1 over its chain and move it."""
    entity, _, _, subject_bias, object_bias = tables
    lr, c, limit, set_back, _ = numbers
    real, dim = entity.dtype.type, entity.shape[1]
    _, size, false = shape
    candidates, one = 1 + false, real(1)
    subjects, per_candidate = size * candidates, 1.0 / candidates
    g = space.row[thread, :dim]
    rows, head, following = space.rows, space.head, space.following
    for u in range(first, last):
        prefetch_row(entity, object_bias, rows, u, distinct)
        row = rows[u]
        v = entity[row]
        fill(g, real(0))
        own, subject_gradient, object_gradient = 0.0, 0.0, 0.0
        at = head[row]
        while at >= 0:
            if at >= subjects:
                i = at - subjects
                subject_gradient += space.s_bias_gradient[i]
                combine((g, space.s_gradient[i, :dim]), (one, one))
            else:
                i = int((at + 0.5) * per_candidate)  # several times as fast as a division, and exact below 2³¹
                k = at - i * candidates
                own += space.of_self[i, k]
                object_gradient += space.of_phi[i, k]
                a, b = space.of_x[i, k], space.of_r[i, k]
                if a != 0 or b != 0:
                    combine((g, space.moved[i, :dim], space.r_copy[i, :dim]), (one, a, b))
            at = following[at]
        combine((g, v), (one, real(own)))
        ball_step(v, g, lr, c, limit, set_back)
        if subject_gradient != 0:  # nearly every row is an object only: spare it the access
            subject_bias[row] -= lr * subject_gradient
        object_bias[row] -= lr * object_gradient
        head[row] = -1


@kernel
def murp_relations(positives: Any, tables: Any, numbers: Any, space: Any) -> None:
    """Move the stretches and translations of the relations of a batch."""
    _, stretch, translation, _, _ = tables
    lr, c, limit, set_back, _ = numbers
    real, dim = stretch.dtype.type, stretch.shape[1]
    one, rate = real(1), real(lr)
    g = space.row[0, :dim]
    for u in range(link_relations(positives, space.relation_head, space.following, space.relation_rows)):
        row = space.relation_rows[u]
        for table in range(2):
            fill(g, real(0))
            i = space.relation_head[row]
            while i >= 0:
                part = space.m_gradient[i, :dim] if table == 0 else space.r_gradient[i, :dim]
                combine((g, part), (one, one))
                i = space.following[i]
            if table == 0:
                combine((stretch[row], g), (one, -rate))
            else:
                ball_step(translation[row], g, lr, c, limit, set_back)
        space.relation_head[row] = -1
