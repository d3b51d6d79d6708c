"""The second kernel of a step: every touched row is moved once, by the sum of its occurrences' gradients."""

from __future__ import annotations

import triton
import triton.language as tl

from murp.engines.triton_ball import ball_step, rounded
from murp.engines.triton_math import columns, widened


@triton.jit
def _occurrence(
    at, active, run, runs, first, of_x, of_r, of_self, of_square, of_phi, following, B, K: tl.constexpr,
    STRETCH_OBJECT: tl.constexpr, TRANSLATE_OBJECT: tl.constexpr, NORMS: tl.constexpr, MOVED_NORMS: tl.constexpr,
    BALL: tl.constexpr,
):  # fmt: skip
    """What an occurrence adds to its row's gradient, a·X[x_row] + b·r[r_row] + q·M²[r_row]∘v + w·v, to both biases,
    and who is next. A coefficient that the model has no use for is 0 and never read."""
    subject = at >= B * K
    at_ = first + at
    phi = tl.load(of_phi + at_, mask=active, other=0.0)
    next_ = tl.load(following + at_, mask=active, other=-1)
    object_ = active & (at < B * K)
    r_row = run * B + tl.where(subject, at - B * K, tl.maximum(at, 0) // K)
    x_row = tl.where(subject, runs * B, 0) + r_row
    one = tl.where(subject & active, 1.0, 0.0).to(phi.dtype)
    b, q = tl.zeros_like(phi), tl.zeros_like(phi)
    if BALL:
        a = one + tl.load(of_x + at_, mask=object_, other=0.0)
        if TRANSLATE_OBJECT:
            b = tl.load(of_r + at_, mask=object_, other=0.0)
        w = tl.load(of_self + at_, mask=object_, other=0.0)
        if STRETCH_OBJECT:
            q = tl.load(of_square + at_, mask=object_, other=0.0)
    else:
        # -|x - Mv|² and, where the score has them, |v|² or |Mv|²
        a = tl.where(subject, one, 2.0 * phi)
        own = tl.where(subject, 0.0, -2.0 * phi)
        w = tl.zeros_like(phi) if MOVED_NORMS else own
        if STRETCH_OBJECT:
            q = w
            w = tl.zeros_like(phi)
        if NORMS:
            w -= own
    return x_row, r_row, a, b, q, w, tl.where(subject, phi, 0.0), tl.where(subject, 0.0, phi), next_


@triton.jit
def _part(
    x_rows, r_rows, square_rows, x_row, r_row, a, b, q, v, active, cols, wide, D: tl.constexpr,
    STRETCH_OBJECT: tl.constexpr, TRANSLATE_OBJECT: tl.constexpr, BALL: tl.constexpr,
):  # fmt: skip
    """Columns ``cols`` of a·X[x_row] + b·r[r_row] + q·M²[r_row]∘v."""
    mask = active[:, None, None] & wide
    part = a[:, None, None] * tl.load(x_rows + x_row[:, None, None] * D + cols, mask=mask, other=0.0)
    if BALL and TRANSLATE_OBJECT:
        part += b[:, None, None] * tl.load(r_rows + r_row[:, None, None] * D + cols, mask=mask, other=0.0)
    if STRETCH_OBJECT:
        part += q[:, None, None] * tl.load(square_rows + r_row[:, None, None] * D + cols, mask=mask, other=0.0) * v
    return part


@triton.jit
def _descend(values, gradient, here, inside, lr):
    """One step of gradient descent on a flat row, whose gradient is cleared."""
    before = tl.load(values + here, mask=inside, other=0.0)
    g = tl.load(gradient + here, mask=inside, other=0.0)
    tl.store(values + here, before - lr * g, mask=inside)
    tl.store(gradient + here, tl.zeros_like(g), mask=inside)


@triton.jit(do_not_specialize=["offset", "capacity", "N", "R", "B", "runs"])
def update_kernel(
    positives, clock, offset, capacity, rates,
    entity, subject_stretch, object_stretch, translation, subject_bias, object_bias,
    x_rows, r_rows, square_rows, of_x, of_r, of_self, of_square, of_phi, row_of, following, head,
    subject_stretch_gradient, object_stretch_gradient, translation_gradient, claim,
    N, R, B, runs,
    K: tl.constexpr, D: tl.constexpr, J: tl.constexpr, W: tl.constexpr, OT: tl.constexpr,
    STRETCH_SUBJECT: tl.constexpr, TRANSLATE_SUBJECT: tl.constexpr,
    STRETCH_OBJECT: tl.constexpr, TRANSLATE_OBJECT: tl.constexpr,
    SUBJECT_BIAS: tl.constexpr, OBJECT_BIAS: tl.constexpr, NORMS: tl.constexpr, MOVED_NORMS: tl.constexpr,
    BALL: tl.constexpr, C: tl.constexpr, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr, HOST: tl.constexpr,
    KEEP: tl.constexpr,
):  # fmt: skip
    """Programs for OT occurrences each, then one a positive for its relation.

    Most chains have one or two links: their loads go out together; longer chains are walked. HOST: a row is read where
    the gradient kernel has kept it, since the table lies in host memory, and only written there. KEEP: entities do not
    move; each row is replaced by its gradient times the learning rate.
    """
    program = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    lr = tl.load(rates + run)
    real: tl.constexpr = x_rows.dtype.element_ty
    stored: tl.constexpr = entity.dtype.element_ty
    cols = columns(J, W)[None]
    inside = cols < D
    occurrences = B * (K + 1)
    tiles = tl.cdiv(occurrences, OT)
    first = run * occurrences
    if program < tiles:
        at = program * OT + tl.arange(0, OT)
        live = at < occurrences
        row = tl.load(row_of + first + at, mask=live, other=0)
        # Who owns the row is asked for and used last: no load waits for the answer.
        owner = live & (tl.load(head + run * N + row, mask=live, other=-1) == at)
        x1, r1, a1, b1, q1, w, s_bias, o_bias, second = _occurrence(
            at, live, run, runs, first, of_x, of_r, of_self, of_square, of_phi, following, B, K,
            STRETCH_OBJECT, TRANSLATE_OBJECT, NORMS, MOVED_NORMS, BALL,
        )  # fmt: skip
        more = second >= 0
        x2, r2, a2, b2, q2, w2, s_bias2, o_bias2, link = _occurrence(
            second, more, run, runs, first, of_x, of_r, of_self, of_square, of_phi, following, B, K,
            STRETCH_OBJECT, TRANSLATE_OBJECT, NORMS, MOVED_NORMS, BALL,
        )  # fmt: skip
        bias = run * N + row
        if SUBJECT_BIAS:
            s_before = tl.load(subject_bias + bias, mask=live, other=0.0)
        if OBJECT_BIAS:
            o_before = tl.load(object_bias + bias, mask=live, other=0.0)
        here = entity + run * N * D + row[:, None, None] * D + cols
        if HOST:
            kept = x_rows + (2 * runs * B + first + at)[:, None, None] * D + cols
            v = tl.load(kept, mask=live[:, None, None] & inside, other=0.0)
        else:
            v = widened(tl.load(here, mask=live[:, None, None] & inside, other=0.0), real)
        g = _part(
            x_rows, r_rows, square_rows, x1, r1, a1, b1, q1, v, live, cols, inside, D,
            STRETCH_OBJECT, TRANSLATE_OBJECT, BALL,
        )  # fmt: skip
        g += _part(
            x_rows, r_rows, square_rows, x2, r2, a2, b2, q2, v, more, cols, inside, D,
            STRETCH_OBJECT, TRANSLATE_OBJECT, BALL,
        )  # fmt: skip
        w, s_bias, o_bias = w + w2, s_bias + s_bias2, o_bias + o_bias2
        while tl.max(link, 0) >= 0:
            deeper = link >= 0
            x2, r2, a2, b2, q2, w2, s_bias2, o_bias2, link = _occurrence(
                link, deeper, run, runs, first, of_x, of_r, of_self, of_square, of_phi, following, B, K,
                STRETCH_OBJECT, TRANSLATE_OBJECT, NORMS, MOVED_NORMS, BALL,
            )  # fmt: skip
            g += _part(
                x_rows, r_rows, square_rows, x2, r2, a2, b2, q2, v, deeper, cols, inside, D,
                STRETCH_OBJECT, TRANSLATE_OBJECT, BALL,
            )  # fmt: skip
            w, s_bias, o_bias = w + w2, s_bias + s_bias2, o_bias + o_bias2
        g += w[:, None, None] * v
        if KEEP:
            moved = lr * g
        else:
            moved = ball_step(v, g, lr, C, LIMIT_GAP, SET_BACK_GAP) if BALL else v - lr * g
            moved = rounded(moved, stored, BALL, C, LIMIT_GAP)
        tl.store(here, moved, mask=owner[:, None, None] & inside)
        tl.store(head + bias, -1, mask=owner)
        if SUBJECT_BIAS:
            if KEEP:
                tl.store(subject_bias + bias, lr * s_bias, mask=owner)
            else:
                tl.store(subject_bias + bias, s_before - lr * s_bias, mask=owner & (s_bias != 0))
        if OBJECT_BIAS:
            tl.store(object_bias + bias, lr * o_bias if KEEP else o_before - lr * o_bias, mask=owner)
    else:
        step = tl.load(clock) + offset
        stamp = (tl.load(clock + 1) + offset).to(tl.int32)
        r = tl.load(positives + ((run * capacity + step) * B + program - tiles) * 3 + 1)
        if tl.atomic_xchg(claim + run * R + r, stamp, sem="relaxed") != stamp:
            here = (run * R + r) * D + cols
            if STRETCH_SUBJECT:
                _descend(subject_stretch, subject_stretch_gradient, here, inside, lr)
            if STRETCH_OBJECT:
                _descend(object_stretch, object_stretch_gradient, here, inside, lr)
            if TRANSLATE_SUBJECT or TRANSLATE_OBJECT:
                gr = tl.load(translation_gradient + here, mask=inside, other=0.0)
                rv = tl.load(translation + here, mask=inside, other=0.0)
                moved = ball_step(rv, gr, lr, C, LIMIT_GAP, SET_BACK_GAP) if BALL else rv - lr * gr
                tl.store(translation + here, moved, mask=inside)
                tl.store(translation_gradient + here, tl.zeros_like(gr), mask=inside)
