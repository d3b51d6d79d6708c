"""The first kernel of a step: negatives, scores, loss, and every gradient as a few numbers an occurrence.

Written for the moved subject x, the translation r of the object and the candidate v. A stretched object M ⊗ v is a
multiple f of Mv: ⟨x, M ⊗ v⟩ = f⟨Mx, v⟩, so that the rows kept for the update are Mx and Mr, and M² besides.
"""

from __future__ import annotations

import triton
import triton.language as tl

from murp.engines.triton_ball import (
    distance_from_sinh,
    mobius_add,
    mobius_add_gradient,
    sinh_bracket,
    sinh_gradient,
    squared_norm_of_sum,
    stretch,
    stretch_gradient,
    stretched_scale,
)
from murp.engines.triton_math import add2, add3, add5, columns, draw, row_sum, row_sum2, row_sum3, sum3, widened


@triton.jit
def _false(negatives, seed, place, k, N, K: tl.constexpr, GIVEN: tl.constexpr):
    """Candidates k > 0 of the positive at ``place``; the first is another one's."""
    if GIVEN:
        return tl.load(negatives + place * (K - 1) + k - 1, mask=(k > 0) & (k < K), other=0)
    else:
        return draw(seed, place * K + k, N)


@triton.jit(do_not_specialize=["offset", "capacity", "N", "R", "B", "runs"])
def gradient_kernel(
    positives, clock, offset, capacity, seeds, negatives,
    entity, subject_stretch, object_stretch, translation, subject_bias, object_bias,
    x_rows, r_rows, square_rows, of_x, of_r, of_self, of_square, of_phi, row_of, following, head,
    subject_stretch_gradient, object_stretch_gradient, translation_gradient, loss,
    N, R, B, runs,
    K: tl.constexpr, D: tl.constexpr, J: tl.constexpr, W: tl.constexpr, KT: tl.constexpr,
    STRETCH_SUBJECT: tl.constexpr, TRANSLATE_SUBJECT: tl.constexpr,
    STRETCH_OBJECT: tl.constexpr, TRANSLATE_OBJECT: tl.constexpr,
    SUBJECT_BIAS: tl.constexpr, OBJECT_BIAS: tl.constexpr, NORMS: tl.constexpr, MOVED_NORMS: tl.constexpr,
    BALL: tl.constexpr, C: tl.constexpr, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr, HOST: tl.constexpr,
    GIVEN: tl.constexpr,
):  # fmt: skip
    """One program a positive triple; K = 1 + k candidates, the true object first.

    m stretches the subject, mo the object, rv translates; NORMS: the biases are |e_s|² and |e_o|², MOVED_NORMS: those
    of the moved points. What the flags leave out is not compiled, nor its tables read. ``entity`` may have fewer digits
    than all else, with which the step computes. HOST: ``entity`` lies in host
    memory, and the rows that are read from there are kept for the update behind the subjects' gradients. GIVEN: the
    false objects are ``negatives`` (steps, B, K - 1) of a single run; otherwise they are drawn here.

    Between the sums over the dimension, where several threads share a row, and the arithmetic on single numbers,
    where one thread should have a row to itself, the products go through memory: kept in registers, every one of
    the several would do all the arithmetic.
    """
    i = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    step = tl.load(clock) + offset
    seed = tl.load(seeds + run)
    at = positives + ((run * capacity + step) * B + i) * 3
    s, r, true = tl.load(at), tl.load(at + 1), tl.load(at + 2)
    cols = columns(J, W)
    inside = cols < D
    k = tl.arange(0, KT)
    o = tl.where(k == 0, true, _false(negatives, seed, step * B + i, k, N, K, GIVEN))
    entity += run * N * D
    relation = (run * R + r) * D
    real: tl.constexpr = x_rows.dtype.element_ty
    h = widened(tl.load(entity + s * D + cols, mask=inside, other=0.0), real)
    if STRETCH_SUBJECT:
        m = tl.load(subject_stretch + relation + cols, mask=inside, other=0.0)
    if STRETCH_OBJECT:
        mo = tl.load(object_stretch + relation + cols, mask=inside, other=0.0)
    if TRANSLATE_SUBJECT or TRANSLATE_OBJECT:
        rv = tl.load(translation + relation + cols, mask=inside, other=0.0)
    bias_s = tl.load(subject_bias + run * N + s) if SUBJECT_BIAS else 0.0
    # The first candidates are on their way while the subject is moved.
    v = tl.load(entity + o[:, None, None] * D + cols[None], mask=(k < K)[:, None, None] & inside[None], other=0.0)
    v = widened(v, real)

    slot = run * B + i
    first = run * B * (K + 1)
    last = B * K + i
    if HOST:
        kept = x_rows + (2 * runs * B + first) * D
        tl.store(kept + last.to(tl.int64) * D + cols, h, mask=inside)
    tl.store(following + first + last, tl.atomic_xchg(head + run * N + s, last, sem="relaxed"))
    tl.store(row_of + first + last, s)
    x = h
    if BALL:
        if STRETCH_SUBJECT:
            x, t, near, far, slope, rho, tau = stretch(m, h, C, SET_BACK_GAP)
        if TRANSLATE_SUBJECT:
            unmoved = x
            x, below, back = mobius_add(unmoved, rv, C, LIMIT_GAP, SET_BACK_GAP)
        if TRANSLATE_OBJECT:
            xx, rr, xr = sum3(x * x, rv * rv, x * rv)
            fixed = C / ((1.0 - C * xx) * (1.0 - C * rr))
            of_vv = 1.0 + 2.0 * C * xr + C * C * xx * rr
            rm = rv * mo if STRETCH_OBJECT else rv
            tl.store(r_rows + slot * D + cols, rm, mask=inside)
        else:
            xx, rr, xr, of_vv = tl.sum(x * x), 0.0, 0.0, 1.0
            fixed = C / (1.0 - C * xx)
        if MOVED_NORMS:
            bias_s = xx
    else:
        if STRETCH_SUBJECT:
            x = m * h
        if TRANSLATE_SUBJECT:
            x += rv
        if TRANSLATE_OBJECT:
            if MOVED_NORMS:
                # |x|² + |y|² - |x - y|² = 2⟨x,y⟩, which is what is computed; y = Mv + r
                bias_s = 2.0 * tl.sum(x * rv)
            else:
                x -= rv
    if NORMS:
        bias_s = tl.sum(h * h)
    xm = x * mo if STRETCH_OBJECT else x
    tl.store(x_rows + slot * D + cols, xm, mask=inside)
    if STRETCH_OBJECT:
        tl.store(square_rows + slot * D + cols, mo * mo, mask=inside)

    gx = tl.zeros_like(h)
    gr = tl.zeros_like(h)
    gmo = tl.zeros_like(h)
    zero = tl.sum(gx)
    sum_loss, sum_bias, sum_xx, sum_rr, sum_xr = zero, zero, zero, zero, zero
    weight = 1.0 / (B * K).to(h.dtype)
    for k0 in range(0, K, KT):
        k = k0 + tl.arange(0, KT)
        live = k < K
        if K > KT:  # noqa: SIM102 - the first is decided when compiling, the second when running
            if k0 > 0:
                o = _false(negatives, seed, step * B + i, k, N, K, GIVEN)
                v = tl.load(
                    entity + o[:, None, None] * D + cols[None], mask=live[:, None, None] & inside[None], other=0.0
                )
                v = widened(v, real)
        occurrence = first + i * K + k
        before = tl.atomic_xchg(head + run * N + o, i * K + k, mask=live, sem="relaxed")
        tl.store(following + occurrence, before, mask=live)
        tl.store(row_of + occurrence, o, mask=live)
        if HOST:
            place = kept + (i * K + k).to(tl.int64)[:, None, None] * D + cols[None]
            tl.store(place, v, mask=live[:, None, None] & inside[None])
        bias_o = tl.load(object_bias + run * N + o, mask=live, other=0.0) if OBJECT_BIAS else 0.0
        if BALL:
            if TRANSLATE_OBJECT:
                xv, vr, vv = row_sum3(v * xm[None], v * rm[None], v * v)
            else:
                xv, vv = row_sum2(v * xm[None], v * v)
                vr = 0.0
            tl.store(of_x + occurrence, xv, mask=live)
            if TRANSLATE_OBJECT:
                tl.store(of_r + occurrence, vr, mask=live)
            tl.store(of_self + occurrence, vv, mask=live)
            if STRETCH_OBJECT:
                mv = v * mo[None]
                tl.store(of_square + occurrence, row_sum(mv * mv), mask=live)
            tl.debug_barrier()
            xv = tl.load(of_x + occurrence, mask=live, other=0.0)
            if TRANSLATE_OBJECT:
                vr = tl.load(of_r + occurrence, mask=live, other=0.0)
            vv = tl.load(of_self + occurrence, mask=live, other=0.0)
            if NORMS:
                bias_o = vv
            if STRETCH_OBJECT:
                # From here on xv, vr and vv are the products of M ⊗ v.
                square = tl.load(of_square + occurrence, mask=live, other=0.0)
                scale_o, by_self, by_square = stretched_scale(vv, square, C, SET_BACK_GAP)
                xv, vv = scale_o * xv, scale_o * scale_o * square
                if TRANSLATE_OBJECT:
                    vr = scale_o * vr
            scale = fixed / (1.0 - C * vv)
            bracket = sinh_bracket(xx, rr, xr, xv, vr, vv, of_vv, C, TRANSLATE_OBJECT)
            z = tl.maximum(bracket * scale, 0.0)
            distance, ratio = distance_from_sinh(z)
            if MOVED_NORMS:
                bias_o = vv
                if TRANSLATE_OBJECT:
                    bias_o, norm_by_vv, norm_by_rr, norm_by_vr = squared_norm_of_sum(vv, rr, vr, C)
            phi = bias_s + bias_o - distance * distance / C
        else:
            if MOVED_NORMS:
                tl.store(of_phi + occurrence, -2.0 * row_sum(v * xm[None]), mask=live)
            else:
                moved = v * mo[None] if STRETCH_OBJECT else v
                e = tl.where(inside[None], x[None] - moved, 0.0)
                tl.store(of_phi + occurrence, row_sum(e * e), mask=live)
            if NORMS:
                tl.store(of_self + occurrence, row_sum(v * v), mask=live)
            tl.debug_barrier()
            if NORMS:
                bias_o = tl.load(of_self + occurrence, mask=live, other=0.0)
            phi = bias_s + bias_o - tl.load(of_phi + occurrence, mask=live, other=0.0)
        decay = tl.exp(-tl.abs(phi))
        probability = tl.where(phi >= 0, 1.0, decay) / (1.0 + decay)
        soft = tl.where(live, tl.maximum(phi, 0.0) + tl.log(1.0 + decay) - tl.where(k == 0, phi, 0.0), 0.0)
        g = tl.where(live, (probability - tl.where(k == 0, 1.0, 0.0)) * weight, 0.0)
        tl.store(of_phi + occurrence, g, mask=live)
        if BALL:
            dz = tl.where(bracket > 0, -2.0 / C * g * ratio, 0.0)
            a, b, w, by_xx, by_rr, by_xr = sinh_gradient(dz, z, scale, xx, rr, xv, vr, vv, of_vv, C, TRANSLATE_OBJECT)
            if MOVED_NORMS:
                by_xx += g
                if TRANSLATE_OBJECT:
                    b += g * norm_by_vr
                    w += 2.0 * g * norm_by_vv
                    by_rr += g * norm_by_rr
                else:
                    w += 2.0 * g
            if STRETCH_OBJECT:
                # a, b and w are those of M ⊗ v = f·Mv; along log f goes what they have along M ⊗ v.
                along = a * xv + w * vv
                if TRANSLATE_OBJECT:
                    along += b * vr
                    b = scale_o * b
                a = scale_o * a
                tl.store(of_square + occurrence, scale_o * scale_o * w + along * by_square, mask=live)
                w = along * by_self
            if NORMS:
                w += 2.0 * g
            tl.store(of_x + occurrence, a, mask=live)
            if TRANSLATE_OBJECT:
                tl.store(of_r + occurrence, b, mask=live)
            tl.store(of_self + occurrence, w, mask=live)
            if TRANSLATE_OBJECT:
                l_, b_, xx_, rr_, xr_ = tl.reduce((soft, g, by_xx, by_rr, by_xr), 0, add5)
                sum_loss, sum_bias, sum_xx, sum_rr, sum_xr = (
                    sum_loss + l_, sum_bias + b_, sum_xx + xx_, sum_rr + rr_, sum_xr + xr_
                )  # fmt: skip
            else:
                l_, b_, xx_ = tl.reduce((soft, g, by_xx), 0, add3)
                sum_loss, sum_bias, sum_xx = sum_loss + l_, sum_bias + b_, sum_xx + xx_
            tl.debug_barrier()
            a = tl.load(of_x + occurrence, mask=live, other=0.0)
            if TRANSLATE_OBJECT:
                b = tl.load(of_r + occurrence, mask=live, other=0.0)
                gx_, gr_ = tl.reduce((a[:, None, None] * v, b[:, None, None] * v), 0, add2)
                gx += gx_
                gr += gr_
            else:
                gx += tl.sum(a[:, None, None] * v, 0)
            if STRETCH_OBJECT:
                gmo += tl.sum(tl.load(of_square + occurrence, mask=live, other=0.0)[:, None, None] * v * v, 0)
        else:
            l_, b_ = tl.reduce((soft, g), 0, add2)
            sum_loss, sum_bias = sum_loss + l_, sum_bias + b_
            tl.debug_barrier()
            twice = 2.0 * tl.load(of_phi + occurrence, mask=live, other=0.0)[:, None, None]
            if MOVED_NORMS:
                gx += tl.sum(twice * v, 0)
            else:
                gr += tl.sum(twice * e, 0)
                if STRETCH_OBJECT:
                    gmo += tl.sum(twice * e * v, 0)
    tl.atomic_add(loss + run, (sum_loss * weight).to(tl.float64), sem="relaxed")
    if BALL:
        if STRETCH_OBJECT:
            gmo = gmo * mo + gx * x
            gx *= mo
            if TRANSLATE_OBJECT:
                gmo += gr * rv
                gr *= mo
        gx += 2.0 * sum_xx * x + sum_xr * rv if TRANSLATE_OBJECT else 2.0 * sum_xx * x
        if TRANSLATE_OBJECT:
            gr += 2.0 * sum_rr * rv + sum_xr * x
    elif MOVED_NORMS:
        if STRETCH_OBJECT:
            gmo = gx * x
            gx *= mo
        if TRANSLATE_OBJECT:
            gx += 2.0 * sum_bias * rv
            gr = 2.0 * sum_bias * x
    if TRANSLATE_OBJECT:
        tl.atomic_add(translation_gradient + relation + cols, gr, mask=inside, sem="relaxed")
    if STRETCH_OBJECT:
        tl.atomic_add(object_stretch_gradient + relation + cols, gmo, mask=inside, sem="relaxed")
    if not BALL and not MOVED_NORMS:
        gx = -gr
    if TRANSLATE_SUBJECT:
        if BALL:
            gx, gr = mobius_add_gradient(gx, unmoved, rv, x, below, back, C)
        else:
            gr = gx
        tl.atomic_add(translation_gradient + relation + cols, gr, mask=inside, sem="relaxed")
    gs = gx
    if STRETCH_SUBJECT:
        if BALL:
            gm, gs = stretch_gradient(gx, m, h, t, near, far, slope, rho, tau, C)
        else:
            gm = gx * h
            gs = gx * m
    if NORMS:
        gs += 2.0 * sum_bias * h
    # The subject is an occurrence too: of its own gradient, once, stored behind the moved subjects.
    tl.store(x_rows + (runs * B + slot) * D + cols, gs, mask=inside)
    tl.store(of_phi + first + last, sum_bias)
    if STRETCH_SUBJECT:
        tl.atomic_add(subject_stretch_gradient + relation + cols, gm, mask=inside, sem="relaxed")
