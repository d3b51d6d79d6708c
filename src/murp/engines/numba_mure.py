"""The parts of a training step of MuRE; see :mod:`murp.engines.numba_steps`."""

from __future__ import annotations

from typing import Any

from murp.compiling import announce, kernel
from murp.engines.numba_math import (
    link_relations,
    prefetch_row,
    softplus_and_sigmoid,
)
from murp.kernels.intrinsics import add_difference, combine, fill, squared_difference, sums

announce(__name__, "the training step")

squared_distance = sums(squared_difference(0, 1))


@kernel
def mure_positive(
    i: int, thread: int, positive: Any, false: Any, tables: Any, numbers: Any, space: Any, size: int
) -> None:
    """With y = R e_s - r the squared distance is |y - v|² and ∂L/∂v = 2g (y - v)."""
    entity, stretch, translation, subject_bias, object_bias = tables
    _, _, _, _, tiny = numbers
    real, dim = entity.dtype.type, entity.shape[1]
    candidates = 1 + len(false)
    s, r, true = positive[0], positive[1], positive[2]
    h, m, rv, y, gy = entity[s], stretch[r], translation[r], space.moved[i, :dim], space.r_gradient[i, :dim]
    for j in range(dim):
        y[j] = m[j] * h[j] - rv[j]
        gy[j] = real(0)
    work = space.work[thread]
    phi, soft, probability = work[0], work[1], work[2]
    bias_of_subject = float(subject_bias[s])
    for k in range(candidates):
        o = true if k == 0 else false[k - 1]
        (square,) = squared_distance((y, entity[o]))
        phi[k] = bias_of_subject + float(object_bias[o]) - float(square)
    softplus_and_sigmoid(phi, soft, probability, space.scratch[thread], space.bits[thread, 0], space.form)
    weight = 1.0 / (size * candidates)
    loss, bias = -phi[0], 0.0
    probability[0] -= 1.0
    for k in range(candidates):
        loss += soft[k]
        bias += probability[k]
        space.of_phi[i, k] = probability[k] * weight
    space.losses[i], space.s_bias_gradient[i] = loss * weight, bias * weight
    # ∂L/∂r = Σ 2g (y - v), and ∂L/∂(R e_s) is its opposite
    for k in range(candidates):
        g = space.of_phi[i, k]
        if abs(g) >= tiny:
            add_difference((gy, y, entity[true if k == 0 else false[k - 1]]), real(2.0 * g))
    for j in range(dim):
        space.m_gradient[i, j] = -gy[j] * h[j]
        space.s_gradient[i, j] = -gy[j] * m[j]


@kernel
def mure_rows(
    first: int, last: int, distinct: int, thread: int, tables: Any, numbers: Any, space: Any, shape: Any
) -> None:
    """Sum the gradients of each of the touched entities first … last - 1 over its chain and move it."""
    entity, _, _, subject_bias, object_bias = tables
    lr, _, _, _, tiny = numbers
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
        subject_gradient, object_gradient = 0.0, 0.0
        at = head[row]
        while at >= 0:
            if at >= subjects:
                i = at - subjects
                subject_gradient += space.s_bias_gradient[i]
                combine((g, space.s_gradient[i, :dim]), (one, one))
            else:
                i = int((at + 0.5) * per_candidate)  # several times as fast as a division, and exact below 2³¹
                k = at - i * candidates
                of_phi = space.of_phi[i, k]
                object_gradient += of_phi
                if abs(of_phi) >= tiny:
                    add_difference((g, space.moved[i, :dim], v), real(2.0 * of_phi))
            at = following[at]
        combine((v, g), (one, real(-lr)))
        if subject_gradient != 0:  # nearly every row is an object only: spare it the access
            subject_bias[row] -= lr * subject_gradient
        object_bias[row] -= lr * object_gradient
        head[row] = -1


@kernel
def mure_relations(positives: Any, tables: Any, numbers: Any, space: Any) -> None:
    """Move the stretches and translations of the relations of a batch."""
    _, stretch, translation, _, _ = tables
    real, dim = stretch.dtype.type, stretch.shape[1]
    one, rate = real(1), real(-numbers[0])
    for u in range(link_relations(positives, space.relation_head, space.following, space.relation_rows)):
        row = space.relation_rows[u]
        i = space.relation_head[row]
        while i >= 0:
            combine((stretch[row], space.m_gradient[i, :dim]), (one, rate))
            combine((translation[row], space.r_gradient[i, :dim]), (one, rate))
            i = space.following[i]
        space.relation_head[row] = -1
