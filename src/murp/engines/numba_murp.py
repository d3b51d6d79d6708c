"""The training step of MuRP in compiled loops: score, hand-derived gradient, row update.

A step has three parts. *Positives*, in parallel: each positive triple scores its candidates and writes down,
for each candidate, the coefficients of its gradient, which is a combination of three vectors,

    ∂L/∂v = a·x + b·r + w·v,        x the moved subject, r the translation, v the candidate itself,

so that no gradient row is stored for it. *Chains*, one after another: every occurrence of an entity is linked
to the one before it. *Rows*, in parallel: each touched row sums its chain and moves. The order of every sum is
fixed by the batch, so the result does not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import Any

from numba import get_thread_id, njit, prange

from murp.engines.numba_math import FLAGS, ball_step, fetch, link, link_relations, softplus_and_sigmoid


@njit(cache=True, fastmath=FLAGS, parallel=True)
def murp_steps(
    positives: Any, negatives: Any,
    entity: Any, stretch: Any, translation: Any, subject_bias: Any, object_bias: Any,
    lr: float, c: float, limit: float, set_back: float, tiny: float,
    moved: Any, r_copy: Any, of_x: Any, of_r: Any, of_self: Any, of_phi: Any,
    s_gradient: Any, m_gradient: Any, r_gradient: Any, s_bias_gradient: Any, losses: Any,
    head: Any, following: Any, rows: Any, relation_head: Any, relation_rows: Any, scratch: Any, products: Any,
) -> float:  # fmt: skip
    """S steps of MuRP; positives (S, B, 3), negatives (S, B, k); the sum of the mean losses.

    A candidate whose ∂L/∂φ is below ``tiny`` moves nothing but biases: it would be lost in rounding, and on the way
    there its products are subnormal numbers, with which a processor takes a hundred times as long.
    """
    steps, size, false = negatives.shape
    candidates = 1 + false
    dim = entity.shape[1]
    root = math.sqrt(c)
    weight = 1.0 / (size * candidates)
    total = 0.0
    for step in range(steps):
        for i in prange(size):
            mine = products[get_thread_id()]
            s, r, true = positives[step, i, 0], positives[step, i, 1], positives[step, i, 2]
            h, m, rv, x = entity[s], stretch[r], translation[r], moved[i]
            zero = entity.dtype.type(0)
            losses[i] = fetch(entity, object_bias, true, negatives[step, i])
            # x = exp0(m log0(h)) = far · near · m h
            hh = zero
            for j in range(dim):
                hh += h[j] * h[j]
            rho = max(root * math.sqrt(hh), 1e-12)
            near = math.atanh(rho) / rho
            tt = zero
            for j in range(dim):
                x[j] = m[j] * h[j]
                tt += x[j] * x[j]
            tau = max(root * near * math.sqrt(tt), 1e-12)
            tanh = math.tanh(tau)
            slope = 1.0 - tanh * tanh
            if tanh > set_back:
                tanh, slope = set_back, 0.0
            far = tanh / tau
            scale = entity.dtype.type(far * near)
            xx_, rr_, xr_ = zero, zero, zero
            for j in range(dim):
                x[j] *= scale
                xx_ += x[j] * x[j]
                rr_ += rv[j] * rv[j]
                xr_ += x[j] * rv[j]
                r_copy[i, j] = rv[j]
            xx, rr, xr = float(xx_), float(rr_), float(xr_)
            for k in range(candidates):
                v = entity[true] if k == 0 else entity[negatives[step, i, k - 1]]
                xv_, vr_, vv_ = zero, zero, zero
                for j in range(dim):
                    xv_ += x[j] * v[j]
                    vr_ += rv[j] * v[j]
                    vv_ += v[j] * v[j]
                mine[0, k], mine[1, k], mine[2, k] = xv_, vr_, vv_
            gap_x, gap_r = 1.0 - c * xx, 1.0 - c * rr
            fixed = c / (gap_x * gap_r)
            of_vv = 1.0 + 2.0 * c * xr + c * c * xx * rr
            loss, bias = 0.0, 0.0
            sum_xx, sum_rr, sum_xr = 0.0, 0.0, 0.0
            for k in range(candidates):
                xv, vr, vv = float(mine[0, k]), float(mine[1, k]), float(mine[2, k])
                gap_v = 1.0 - c * vv
                scale_z = fixed / gap_v
                bracket = (
                    2.0 * vr * (1.0 + c * xx - 2.0 * c * xv)
                    - 2.0 * (1.0 + c * rr) * xv
                    + vv * of_vv
                    + (xx - 2.0 * xr + rr)
                )
                z = max(bracket * scale_z, 0.0)
                rest = math.sqrt(z * z + z)
                distance = math.log1p(2.0 * (z + rest))
                o = true if k == 0 else negatives[step, i, k - 1]
                phi = -distance * distance / c + subject_bias[s] + object_bias[o]
                soft, probability = softplus_and_sigmoid(phi)
                g = probability
                loss += soft
                if k == 0:
                    g -= 1.0
                    loss -= phi
                g *= weight
                bias += g
                at = i * candidates + k
                of_phi[at] = g
                if abs(g) < tiny:
                    of_x[at], of_r[at], of_self[at] = zero, zero, 0.0
                    mine[0, k], mine[1, k] = zero, zero
                    continue
                # dL/dz = -g · 2 distance / (c √(z² + z)), and distance/√(z² + z) → 2 as z → 0
                ratio = distance / rest if rest > 1e-150 else 2.0
                dz = -g * 2.0 / c * ratio if bracket > 0.0 else 0.0
                lift = dz * scale_z
                a = lift * (-4.0 * c * vr - 2.0 * (1.0 + c * rr))
                b = lift * 2.0 * (1.0 + c * xx - 2.0 * c * xv)
                of_x[at], of_r[at] = a, b
                of_self[at] = 2.0 * (lift * of_vv + dz * z * c / gap_v)
                mine[0, k], mine[1, k] = a, b
                sum_xx += lift * (2.0 * c * vr + c * c * rr * vv + 1.0) + dz * z * c / gap_x
                sum_rr += lift * (-2.0 * c * xv + c * c * xx * vv + 1.0) + dz * z * c / gap_r
                sum_xr += lift * (2.0 * c * vv - 2.0)
            losses[i], s_bias_gradient[i] = loss * weight, bias
            gx, gr, gm = s_gradient[i], r_gradient[i], m_gradient[i]
            two_xx, two_rr = entity.dtype.type(2.0 * sum_xx), entity.dtype.type(2.0 * sum_rr)
            cross = entity.dtype.type(sum_xr)
            for j in range(dim):
                gx[j] = two_xx * x[j] + cross * rv[j]
                gr[j] = two_rr * rv[j] + cross * x[j]
            for k in range(candidates):
                v = entity[true] if k == 0 else entity[negatives[step, i, k - 1]]
                a_k, b_k = mine[0, k], mine[1, k]
                if a_k == 0 and b_k == 0:
                    continue
                for j in range(dim):
                    gx[j] += a_k * v[j]
                    gr[j] += b_k * v[j]
            # Back through exp0 (t = near m h), then through the stretch, then through log0.
            inner = zero
            for j in range(dim):
                inner += gx[j] * m[j] * h[j]
            f = entity.dtype.type(far)
            bend = entity.dtype.type((slope - far) / (tau * tau) * c * near * inner * near)
            n = entity.dtype.type(near)
            inner2 = zero
            for j in range(dim):
                gt = f * gx[j] + bend * m[j] * h[j]
                gm[j] = gt * n * h[j]
                gx[j] = gt * m[j]
                inner2 += gx[j] * h[j]
            bend2 = entity.dtype.type((1.0 / (1.0 - rho * rho) - near) / (rho * rho) * c * inner2)
            for j in range(dim):
                gx[j] = n * gx[j] + bend2 * h[j]

        distinct = link(positives[step], negatives[step], head, following, rows)
        subjects = size * candidates
        for u in prange(distinct):
            g = scratch[get_thread_id()]
            row = rows[u]
            v = entity[row]
            zero = entity.dtype.type(0)
            for j in range(dim):
                g[j] = zero
            own, subject_gradient, object_gradient = 0.0, 0.0, 0.0
            at = head[row]
            while at >= 0:
                if at >= subjects:
                    i = at - subjects
                    subject_gradient += s_bias_gradient[i]
                    for j in range(dim):
                        g[j] += s_gradient[i, j]
                else:
                    i = at // candidates
                    own += of_self[at]
                    object_gradient += of_phi[at]
                    a_k, b_k = of_x[at], of_r[at]
                    if a_k != 0 or b_k != 0:
                        for j in range(dim):
                            g[j] += a_k * moved[i, j] + b_k * r_copy[i, j]
                at = following[at]
            w = entity.dtype.type(own)
            for j in range(dim):
                g[j] += w * v[j]
            ball_step(v, g, lr, c, limit, set_back)
            if subject_gradient != 0:  # nearly every row is an object only: spare it the access
                subject_bias[row] -= lr * subject_gradient
            object_bias[row] -= lr * object_gradient
            head[row] = -1

        touched = link_relations(positives[step], relation_head, following, relation_rows)
        g = scratch[0]
        for u in range(touched):
            row = relation_rows[u]
            for table in range(2):
                g[:] = entity.dtype.type(0)
                i = relation_head[row]
                while i >= 0:
                    part = m_gradient[i] if table == 0 else r_gradient[i]
                    for j in range(dim):
                        g[j] += part[j]
                    i = following[i]
                if table == 0:
                    rate = entity.dtype.type(lr)
                    for j in range(dim):
                        stretch[row, j] -= rate * g[j]
                else:
                    ball_step(translation[row], g, lr, c, limit, set_back)
            relation_head[row] = -1
        for i in range(size):
            total += losses[i]
    return total
