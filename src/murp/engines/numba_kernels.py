"""The training step of MuRP and MuRE in compiled loops: score, hand-derived gradient, row update.

A step has three parts. *Positives*, in parallel: each positive triple scores its candidates and writes down,
for each candidate, the coefficients of its gradient, which is a combination of three vectors,

    ∂L/∂v = a·x + b·r + w·v,        x the moved subject, r the translation, v the candidate itself,

so that no gradient row is stored for it. *Chains*, one after another: every occurrence of an entity is linked
to the one before it. *Rows*, in parallel: each touched row sums its chain and moves. The order of every sum is
fixed by the batch, so the result does not depend on the number of threads.

Sums over the dimension may be reassociated into vector instructions (``fastmath`` without the flags that
assume finite numbers); arithmetic on single numbers is in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numba import get_thread_id, njit, prange

_FLAGS = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, fastmath=_FLAGS, inline="always")
def _softplus_and_sigmoid(phi: float) -> tuple[float, float]:
    e = math.exp(-abs(phi))
    return max(phi, 0.0) + math.log1p(e), (1.0 if phi >= 0 else e) / (1.0 + e)


@njit(cache=True, fastmath=_FLAGS)
def _link(positives: Any, negatives: Any, head: Any, following: Any, rows: Any) -> int:
    """Chain the occurrences of each entity; the number of distinct entities, listed in ``rows``.

    Occurrence i·(1+k)+j is candidate j of positive i, the true object first; B·(1+k)+i is subject i. A chain
    starts at ``head[entity]`` and goes on through ``following``; it runs from the last occurrence to the first.
    """
    size, false = negatives.shape
    candidates = 1 + false
    distinct = 0
    for i in range(size):
        for j in range(candidates + 1):
            if j == 0:
                entity, occurrence = positives[i, 2], i * candidates
            elif j < candidates:
                entity, occurrence = negatives[i, j - 1], i * candidates + j
            else:
                entity, occurrence = positives[i, 0], size * candidates + i
            before = head[entity]
            following[occurrence] = before
            if before < 0:
                rows[distinct] = entity
                distinct += 1
            head[entity] = occurrence
    return distinct


@njit(cache=True, fastmath=_FLAGS, inline="always")
def _ball_step(x: Any, g: Any, lr: float, c: float, limit: float, set_back: float) -> None:
    """:func:`murp.geometry.poincare.step` on one row, in place; ``g`` is the gradient."""
    zero = x.dtype.type(0)
    xx, gg, xg = zero, zero, zero
    for j in range(x.shape[0]):
        xx += x[j] * x[j]
        gg += g[j] * g[j]
        xg += x[j] * g[j]
    if gg == 0:
        return
    # With h = √c lr p|g|/4 all that is needed is h² and tanh(h)/h, a function of h²: for the small h of nearly every
    # row a Padé approximant, exact to rounding, which saves three roots and the tanh.
    cxx = c * xx
    p = 1.0 - cxx
    reach = 0.25 * lr * p
    hh = c * reach * reach * gg
    if hh < 0.36:
        above = 2027025.0 + hh * (270270.0 + hh * (6930.0 + hh * 36.0))
        over = above / (2027025.0 + hh * (945945.0 + hh * (51975.0 + hh * (630.0 + hh))))
    else:
        h = math.sqrt(hh)
        over = math.tanh(h) / h
    tau = reach * over
    tt = hh * over * over
    q = c * tau * xg
    s = p / ((1.0 - q) * (1.0 - q) + max(cxx * tt - q * q, 0.0))
    keep, add = x.dtype.type(1.0 + s * tt), x.dtype.type(-s * tau)
    norm = zero
    for j in range(x.shape[0]):
        moved = keep * x[j] + add * g[j]
        x[j] = moved
        norm += moved * moved
    if c * norm > limit * limit:
        back = x.dtype.type(set_back / math.sqrt(c * norm))
        for j in range(x.shape[0]):
            x[j] *= back


@njit(cache=True, fastmath=_FLAGS, parallel=True)
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
            # Touch every row first: these loads do not wait for each other, as the arithmetic below would make them.
            touch = zero
            for k in range(candidates):
                o = true if k == 0 else negatives[step, i, k - 1]
                touch += object_bias[o]
                for j in range(0, dim, 16):
                    touch += entity[o, j]
            losses[i] = touch
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
                soft, probability = _softplus_and_sigmoid(phi)
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

        distinct = _link(positives[step], negatives[step], head, following, rows)
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
            _ball_step(v, g, lr, c, limit, set_back)
            if subject_gradient != 0:  # nearly every row is an object only: spare it the access
                subject_bias[row] -= lr * subject_gradient
            object_bias[row] -= lr * object_gradient
            head[row] = -1

        touched = _link_relations(positives[step], relation_head, following, relation_rows)
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
                    _ball_step(translation[row], g, lr, c, limit, set_back)
            relation_head[row] = -1
        for i in range(size):
            total += losses[i]
    return total


@njit(cache=True, fastmath=_FLAGS, parallel=True)
def mure_steps(
    positives: Any, negatives: Any,
    entity: Any, stretch: Any, translation: Any, subject_bias: Any, object_bias: Any, lr: float, tiny: float,
    target: Any, of_phi: Any, s_gradient: Any, m_gradient: Any, r_gradient: Any, s_bias_gradient: Any, losses: Any,
    head: Any, following: Any, rows: Any, relation_head: Any, relation_rows: Any, scratch: Any,
) -> float:  # fmt: skip
    """S steps of MuRE; with y = R e_s - r the squared distance is |y - v|² and ∂L/∂v = 2g (y - v)."""
    steps, size, false = negatives.shape
    candidates = 1 + false
    dim = entity.shape[1]
    weight = 1.0 / (size * candidates)
    total = 0.0
    for step in range(steps):
        for i in prange(size):
            s, r, true = positives[step, i, 0], positives[step, i, 1], positives[step, i, 2]
            h, m, rv, y, gy = entity[s], stretch[r], translation[r], target[i], r_gradient[i]
            zero = entity.dtype.type(0)
            touch = zero  # as in murp_steps
            for k in range(candidates):
                o = true if k == 0 else negatives[step, i, k - 1]
                touch += object_bias[o]
                for j in range(0, dim, 16):
                    touch += entity[o, j]
            losses[i] = touch
            for j in range(dim):
                y[j] = m[j] * h[j] - rv[j]
                gy[j] = zero
            loss, bias = 0.0, 0.0
            for k in range(candidates):
                o = true if k == 0 else negatives[step, i, k - 1]
                v = entity[o]
                square = zero
                for j in range(dim):
                    e = y[j] - v[j]
                    square += e * e
                phi = -float(square) + subject_bias[s] + object_bias[o]
                soft, probability = _softplus_and_sigmoid(phi)
                g = probability
                loss += soft
                if k == 0:
                    g -= 1.0
                    loss -= phi
                g *= weight
                bias += g
                of_phi[i * candidates + k] = g
                if abs(g) < tiny:
                    continue
                # ∂L/∂r = Σ 2g (y - v), and ∂L/∂(R e_s) is its opposite
                g2 = entity.dtype.type(2.0 * g)
                for j in range(dim):
                    gy[j] += g2 * (y[j] - v[j])
            losses[i], s_bias_gradient[i] = loss * weight, bias
            for j in range(dim):
                m_gradient[i, j] = -gy[j] * h[j]
                s_gradient[i, j] = -gy[j] * m[j]

        distinct = _link(positives[step], negatives[step], head, following, rows)
        subjects = size * candidates
        rate = entity.dtype.type(lr)
        for u in prange(distinct):
            g = scratch[get_thread_id()]
            row = rows[u]
            v = entity[row]
            zero = entity.dtype.type(0)
            for j in range(dim):
                g[j] = zero
            subject_gradient, object_gradient = 0.0, 0.0
            at = head[row]
            while at >= 0:
                if at >= subjects:
                    i = at - subjects
                    subject_gradient += s_bias_gradient[i]
                    for j in range(dim):
                        g[j] += s_gradient[i, j]
                else:
                    i = at // candidates
                    object_gradient += of_phi[at]
                    if abs(of_phi[at]) >= tiny:
                        g2 = entity.dtype.type(2.0 * of_phi[at])
                        for j in range(dim):
                            g[j] += g2 * (target[i, j] - v[j])
                at = following[at]
            for j in range(dim):
                v[j] -= rate * g[j]
            if subject_gradient != 0:  # nearly every row is an object only: spare it the access
                subject_bias[row] -= lr * subject_gradient
            object_bias[row] -= lr * object_gradient
            head[row] = -1

        touched = _link_relations(positives[step], relation_head, following, relation_rows)
        for u in range(touched):
            row = relation_rows[u]
            i = relation_head[row]
            while i >= 0:
                for j in range(dim):
                    stretch[row, j] -= rate * m_gradient[i, j]
                    translation[row, j] -= rate * r_gradient[i, j]
                i = following[i]
            relation_head[row] = -1
        for i in range(size):
            total += losses[i]
    return total


@njit(cache=True)
def _link_relations(positives: Any, head: Any, following: Any, rows: Any) -> int:
    """As :func:`_link` for the relations of a batch."""
    distinct = 0
    for i in range(positives.shape[0]):
        relation = positives[i, 1]
        before = head[relation]
        following[i] = before
        if before < 0:
            rows[distinct] = relation
            distinct += 1
        head[relation] = i
    return distinct


def workspace(
    dtype: Any, entities: int, relations: int, dim: int, size: int, false: int, threads: int
) -> dict[str, Any]:
    """Every array a step writes to beside the tables, made once: no allocation while training."""
    occurrences = size * (2 + false)

    def rows(number: int) -> Any:
        return np.zeros((number, dim), dtype=dtype)

    return {
        "moved": rows(size),
        "r_copy": rows(size),
        "of_x": np.zeros(occurrences, dtype=dtype),
        "of_r": np.zeros(occurrences, dtype=dtype),
        "of_self": np.zeros(occurrences),
        "of_phi": np.zeros(occurrences),
        "s_gradient": rows(size),
        "m_gradient": rows(size),
        "r_gradient": rows(size),
        "s_bias_gradient": np.zeros(size),
        "losses": np.zeros(size),
        "head": torch.full((entities,), -1, dtype=torch.int32).numpy(),  # on large pages, where PyTorch uses them
        "following": np.zeros(occurrences, dtype=np.int32),
        "rows": np.zeros(occurrences, dtype=np.int64),
        "relation_head": np.full(relations, -1, dtype=np.int32),
        "relation_rows": np.zeros(size, dtype=np.int64),
        "scratch": rows(threads),
        "products": np.zeros((threads, 3, 1 + false), dtype=dtype),
    }
