"""The training step of MuRE in compiled loops, in the three parts of :mod:`murp.engines.numba_murp`."""

from __future__ import annotations

from typing import Any

from numba import get_thread_id, njit, prange

from murp.engines.numba_math import FLAGS, fetch, link, link_relations, softplus_and_sigmoid


@njit(cache=True, fastmath=FLAGS, parallel=True)
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
            losses[i] = fetch(entity, object_bias, true, negatives[step, i])
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
                soft, probability = softplus_and_sigmoid(phi)
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

        distinct = link(positives[step], negatives[step], head, following, rows)
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

        touched = link_relations(positives[step], relation_head, following, relation_rows)
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
