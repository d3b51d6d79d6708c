"""The training step of MuRP and MuRE as two Triton kernels.

*gradient*: a program for each positive triple draws its false objects, scores all candidates in tiles and writes,
for each, the coefficients of its gradient, which is a combination of three vectors,

    ∂L/∂v = a·x + b·r + w·v,        x the moved subject, r the translation, v the candidate itself.

It also links every occurrence of an entity to the one before (an atomic exchange at ``head``), so that no
gradient table is needed. *update*: a program for some occurrences; the occurrence that stands at the head of its
entity's chain sums the chain, moves the row and clears the head. Relations, few and hot, are summed by atomic
additions and moved by whoever claims them first. The cost does not depend on the number of entities.

The second axis of the grid numbers independent runs of the same shape, which train side by side; the tables have
that axis first. Only exp, log and sqrt are used, so that the interpreter on the CPU runs the same code. The radii
near the boundary are given as their distance from 1 (LIMIT_GAP, SET_BACK_GAP): Triton may round a constant to
float32, and 1 - 8 eps of float64 would become 1.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _small_artanh_over(q):
    """artanh(q)/q for 0 ≤ q ≤ 0.35 by its continued fraction."""
    x = q * q
    if q.dtype == tl.float64:
        f = 13.0 - 49.0 * x / 15.0
        f = 11.0 - 36.0 * x / f
        f = 9.0 - 25.0 * x / f
        f = 7.0 - 16.0 * x / f
    else:
        f = 7.0 - 16.0 / 9.0 * x
    f = 5.0 - 9.0 * x / f
    f = 3.0 - 4.0 * x / f
    return 1.0 / (1.0 - x / f)


@triton.jit
def _artanh_over(q):
    """artanh(q)/q for 0 ≤ q < 1; the logarithm would cancel for small q."""
    large = tl.maximum(q, 0.35)
    long = 0.5 * tl.log((1.0 + large) / (1.0 - large)) / large
    return tl.where(q < 0.35, _small_artanh_over(tl.minimum(q, 0.35)), long)


@triton.jit
def _tanh_over(h):
    """tanh(h)/h for h ≥ 0: a Padé approximant where the exponential would cancel."""
    x = h * h
    above = 2027025.0 + x * (270270.0 + x * (6930.0 + x * 36.0))
    below = 2027025.0 + x * (945945.0 + x * (51975.0 + x * (630.0 + x)))
    large = tl.where(h < 0.6, 1.0, h)
    return tl.where(h < 0.6, above / below, (1.0 - 2.0 / (tl.exp(2.0 * large) + 1.0)) / large)


@triton.jit
def _draw(seed, position, number):
    """Uniform in 0 … number-1, by multiplying a 32-bit Philox number: off uniform by number/2³² at most."""
    bits = tl.randint(seed, position).to(tl.uint32, bitcast=True).to(tl.uint64)
    return ((bits * number.to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit(do_not_specialize=["N", "total"])
def draw_kernel(out, seeds, N, total, TILE: tl.constexpr):
    """The false objects as the gradient kernel draws them, for inspection: out (runs, total)."""
    position = tl.program_id(0) * TILE + tl.arange(0, TILE)
    run = tl.program_id(1)
    tl.store(out + run * total + position, _draw(tl.load(seeds + run), position, N), mask=position < total)


@triton.jit
def _add3(a, b, c, d, e, f):
    return a + d, b + e, c + f


@triton.jit
def _add5(a, b, c, d, e, f, g, h, i, j):
    return a + f, b + g, c + h, d + i, e + j


@triton.jit
def _add2(a, b, c, d):
    return a + c, b + d


@triton.jit(do_not_specialize=["offset", "capacity", "N", "R", "B", "runs"])
def gradient_kernel(
    positives, clock, offset, capacity, seeds,
    entity, stretch, translation, subject_bias, object_bias,
    x_rows, r_rows, of_x, of_r, of_self, of_phi, row_of, following, head,
    stretch_gradient, translation_gradient, loss,
    N, R, B, runs,
    K: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, KT: tl.constexpr,
    BALL: tl.constexpr, C: tl.constexpr, SET_BACK_GAP: tl.constexpr,
):  # fmt: skip
    """One program a positive triple; K = 1 + k candidates, the true object first.

    Between the sums over the dimension, where sixteen threads share a row, and the arithmetic on single numbers,
    where one thread should have a row to itself, the products go through memory: kept in registers, every one of
    the sixteen would do all the arithmetic.
    """
    i = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    step = tl.load(clock) + offset
    seed = tl.load(seeds + run)
    at = positives + ((run * capacity + step) * B + i) * 3
    s, r, true = tl.load(at), tl.load(at + 1), tl.load(at + 2)
    cols = tl.arange(0, DP)
    inside = cols < D
    k = tl.arange(0, KT)
    o = tl.where(k == 0, true, _draw(seed, (step * B + i) * K + k, N))
    entity += run * N * D
    h = tl.load(entity + s * D + cols, mask=inside, other=0.0)
    m = tl.load(stretch + (run * R + r) * D + cols, mask=inside, other=0.0)
    rv = tl.load(translation + (run * R + r) * D + cols, mask=inside, other=0.0)
    bias_s = tl.load(subject_bias + run * N + s)
    # The first candidates are on their way while the subject is moved.
    v = tl.load(entity + o[:, None] * D + cols[None, :], mask=(k < K)[:, None] & inside[None, :], other=0.0)

    slot = run * B + i
    first = run * B * (K + 1)
    last = B * K + i
    tl.store(following + first + last, tl.atomic_xchg(head + run * N + s, last, sem="relaxed"))
    tl.store(row_of + first + last, s)
    if BALL:
        rho = tl.sqrt(C * tl.sum(h * h, 0))
        near = _artanh_over(rho)
        t = near * m * h
        tau = tl.sqrt(C * tl.sum(t * t, 0))
        far = _tanh_over(tau)
        tanh = far * tau
        outside = 1.0 - tanh < SET_BACK_GAP
        inverse = 1.0 / tl.where(outside, tau, 1.0)
        slope = tl.where(outside, 0.0, 1.0 - tanh * tanh)
        far = tl.where(outside, inverse - inverse * SET_BACK_GAP, far)
        x = far * t
        xx, rr, xr = tl.reduce((x * x, rv * rv, x * rv), 0, _add3)
        fixed = C / ((1.0 - C * xx) * (1.0 - C * rr))
        of_vv = 1.0 + 2.0 * C * xr + C * C * xx * rr
        tl.store(r_rows + slot * D + cols, rv, mask=inside)
    else:
        x = m * h - rv
    tl.store(x_rows + slot * D + cols, x, mask=inside)

    gx = tl.zeros_like(h)
    gr = tl.zeros_like(h)
    zero = tl.sum(gx, 0)
    sum_loss, sum_bias, sum_xx, sum_rr, sum_xr = zero, zero, zero, zero, zero
    weight = 1.0 / (B * K).to(h.dtype)
    for k0 in range(0, K, KT):
        k = k0 + tl.arange(0, KT)
        live = k < K
        if K > KT:  # noqa: SIM102 - the first is decided when compiling, the second when running
            if k0 > 0:
                o = _draw(seed, (step * B + i) * K + k, N)
                v = tl.load(entity + o[:, None] * D + cols[None, :], mask=live[:, None] & inside[None, :], other=0.0)
        occurrence = first + i * K + k
        before = tl.atomic_xchg(head + run * N + o, i * K + k, mask=live, sem="relaxed")
        tl.store(following + occurrence, before, mask=live)
        tl.store(row_of + occurrence, o, mask=live)
        bias_o = tl.load(object_bias + run * N + o, mask=live, other=0.0)
        if BALL:
            xv, vr, vv = tl.reduce((v * x[None, :], v * rv[None, :], v * v), 1, _add3)
            tl.store(of_x + occurrence, xv, mask=live)
            tl.store(of_r + occurrence, vr, mask=live)
            tl.store(of_self + occurrence, vv, mask=live)
            tl.debug_barrier()
            xv = tl.load(of_x + occurrence, mask=live, other=0.0)
            vr = tl.load(of_r + occurrence, mask=live, other=0.0)
            vv = tl.load(of_self + occurrence, mask=live, other=0.0)
            gap = 1.0 - C * vv
            scale = fixed / gap
            turn = 1.0 + C * xx - 2.0 * C * xv
            bracket = 2.0 * vr * turn - 2.0 * (1.0 + C * rr) * xv + vv * of_vv + (xx - 2.0 * xr + rr)
            z = tl.maximum(bracket * scale, 0.0)
            # distance = √c d = 2 artanh(q) with q = √(z/(1+z)); for larger q as the logarithm of a sum
            root = tl.sqrt(z)
            rest = tl.sqrt(1.0 + z)
            q = root / rest
            ratio = 2.0 * _small_artanh_over(tl.minimum(q, 0.35)) / (1.0 + z)
            long = tl.log(1.0 + 2.0 * root * (root + rest))
            ratio = tl.where(q < 0.35, ratio, long / tl.where(q < 0.35, 1.0, root * rest))
            distance = ratio * root * rest
            phi = bias_s + bias_o - distance * distance / C
        else:
            e = tl.where(inside[None, :], x[None, :] - v, 0.0)
            tl.store(of_phi + occurrence, tl.sum(e * e, 1), mask=live)
            tl.debug_barrier()
            phi = bias_s + bias_o - tl.load(of_phi + occurrence, mask=live, other=0.0)
        decay = tl.exp(-tl.abs(phi))
        probability = tl.where(phi >= 0, 1.0, decay) / (1.0 + decay)
        soft = tl.where(live, tl.maximum(phi, 0.0) + tl.log(1.0 + decay) - tl.where(k == 0, phi, 0.0), 0.0)
        g = tl.where(live, (probability - tl.where(k == 0, 1.0, 0.0)) * weight, 0.0)
        tl.store(of_phi + occurrence, g, mask=live)
        if BALL:
            dz = tl.where(bracket > 0, -2.0 / C * g * ratio, 0.0)
            lift = dz * scale
            tl.store(of_x + occurrence, lift * (-4.0 * C * vr - 2.0 * (1.0 + C * rr)), mask=live)
            tl.store(of_r + occurrence, 2.0 * lift * turn, mask=live)
            tl.store(of_self + occurrence, 2.0 * (lift * of_vv + dz * z * C / gap), mask=live)
            by_xx = lift * (2.0 * C * vr + C * C * rr * vv + 1.0) + dz * z * (C / (1.0 - C * xx))
            by_rr = lift * (-2.0 * C * xv + C * C * xx * vv + 1.0) + dz * z * (C / (1.0 - C * rr))
            by_xr = lift * (2.0 * C * vv - 2.0)
            l_, b_, xx_, rr_, xr_ = tl.reduce((soft, g, by_xx, by_rr, by_xr), 0, _add5)
            sum_loss, sum_bias, sum_xx, sum_rr, sum_xr = (
                sum_loss + l_, sum_bias + b_, sum_xx + xx_, sum_rr + rr_, sum_xr + xr_
            )  # fmt: skip
            tl.debug_barrier()
            a = tl.load(of_x + occurrence, mask=live, other=0.0)
            b = tl.load(of_r + occurrence, mask=live, other=0.0)
            gx_, gr_ = tl.reduce((a[:, None] * v, b[:, None] * v), 0, _add2)
            gx += gx_
            gr += gr_
        else:
            l_, b_ = tl.reduce((soft, g), 0, _add2)
            sum_loss, sum_bias = sum_loss + l_, sum_bias + b_
            tl.debug_barrier()
            gr += tl.sum(2.0 * tl.load(of_phi + occurrence, mask=live, other=0.0)[:, None] * e, 0)
    tl.atomic_add(loss + run, (sum_loss * weight).to(tl.float64), sem="relaxed")
    if BALL:
        gx += 2.0 * sum_xx * x + sum_xr * rv
        gr += 2.0 * sum_rr * rv + sum_xr * x
        tl.atomic_add(translation_gradient + (run * R + r) * D + cols, gr, mask=inside, sem="relaxed")
        # Back through exp0, the stretch and log0; a ratio whose limit at 0 is finite multiplies a vanishing term.
        tau2 = tl.maximum(tau * tau, 1e-24)
        gt = far * gx + (slope - far) / tau2 * C * tl.sum(gx * t, 0) * t
        gm = gt * near * h
        gy = gt * m
        rho2 = tl.maximum(rho * rho, 1e-24)
        gs = near * gy + (1.0 / (1.0 - rho * rho) - near) / rho2 * C * tl.sum(gy * h, 0) * h
    else:
        tl.atomic_add(translation_gradient + (run * R + r) * D + cols, gr, mask=inside, sem="relaxed")
        gm = -gr * h
        gs = -gr * m
    # The subject is an occurrence too: of its own gradient, once, stored behind the moved subjects.
    tl.store(x_rows + (runs * B + slot) * D + cols, gs, mask=inside)
    tl.store(of_phi + first + last, sum_bias)
    tl.atomic_add(stretch_gradient + (run * R + r) * D + cols, gm, mask=inside, sem="relaxed")


@triton.jit
def _ball_step(x, g, lr, C: tl.constexpr, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr):
    """murp.geometry.poincare.step on rows (n, DP); a zero gradient returns them unchanged."""
    root: tl.constexpr = C**0.5
    xx, gg, xg = tl.reduce((x * x, g * g, x * g), 1, _add3)
    radius = tl.sqrt(C * xx)
    p = (1.0 - radius) * (1.0 + radius)
    h = root * 0.25 * lr * p * tl.sqrt(gg)
    over = _tanh_over(h)
    t = over * h
    tau = 0.25 * lr * p * over
    q = C * tau * xg
    below = (1.0 - q) * (1.0 - q) + tl.maximum(radius * t * (radius * t) - q * q, 0.0)
    s = p / below
    moved = x * (1.0 + s * t * t)[:, None] - g * (s * tau)[:, None]
    far = root * tl.sqrt(tl.sum(moved * moved, 1))
    outside = 1.0 - far < LIMIT_GAP
    inverse = 1.0 / tl.where(outside, far, 1.0)
    back = tl.where(outside, inverse - inverse * SET_BACK_GAP, 1.0)
    return moved * back[:, None]


@triton.jit
def _occurrence(
    at, active, run, runs, first, of_x, of_r, of_self, of_phi, following, B, K: tl.constexpr, BALL: tl.constexpr
):
    """What an occurrence adds to its row's gradient, a·X[x_row] + b·r[r_row] + w·v, to both biases, and who is next."""
    subject = at >= B * K
    at_ = first + at
    phi = tl.load(of_phi + at_, mask=active, other=0.0)
    next_ = tl.load(following + at_, mask=active, other=-1)
    object_ = active & (at < B * K)
    r_row = run * B + tl.where(subject, at - B * K, tl.maximum(at, 0) // K)
    x_row = tl.where(subject, runs * B, 0) + r_row
    one = tl.where(subject & active, 1.0, 0.0).to(phi.dtype)
    if BALL:
        a = one + tl.load(of_x + at_, mask=object_, other=0.0)
        b = tl.load(of_r + at_, mask=object_, other=0.0)
        w = tl.load(of_self + at_, mask=object_, other=0.0)
    else:
        a = tl.where(subject, one, 2.0 * phi)
        b = tl.zeros_like(phi)
        w = tl.where(subject, 0.0, -2.0 * phi)
    return x_row, r_row, a, b, w, tl.where(subject, phi, 0.0), tl.where(subject, 0.0, phi), next_


@triton.jit
def _part(x_rows, r_rows, x_row, r_row, a, b, active, cols, wide, D: tl.constexpr, BALL: tl.constexpr):
    """Columns ``cols`` of a·X[x_row] + b·r[r_row]."""
    mask = active[:, None] & wide
    part = a[:, None] * tl.load(x_rows + x_row[:, None] * D + cols, mask=mask, other=0.0)
    if BALL:
        part += b[:, None] * tl.load(r_rows + r_row[:, None] * D + cols, mask=mask, other=0.0)
    return part


@triton.jit(do_not_specialize=["offset", "capacity", "N", "R", "B", "runs"])
def update_kernel(
    positives, clock, offset, capacity, rates,
    entity, stretch, translation, subject_bias, object_bias,
    x_rows, r_rows, of_x, of_r, of_self, of_phi, row_of, following, head,
    stretch_gradient, translation_gradient, claim,
    N, R, B, runs,
    K: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, OT: tl.constexpr,
    BALL: tl.constexpr, C: tl.constexpr, LIMIT_GAP: tl.constexpr, SET_BACK_GAP: tl.constexpr,
):  # fmt: skip
    """Programs for OT occurrences each, then one a positive for its relation.

    Most chains have one or two links: their loads go out together; longer chains are walked.
    """
    program = tl.program_id(0)
    run = tl.program_id(1).to(tl.int64)
    lr = tl.load(rates + run)
    cols = tl.arange(0, DP)[None, :]
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
        x1, r1, a1, b1, w, s_bias, o_bias, second = _occurrence(
            at, live, run, runs, first, of_x, of_r, of_self, of_phi, following, B, K, BALL
        )
        more = second >= 0
        x2, r2, a2, b2, w2, s_bias2, o_bias2, link = _occurrence(
            second, more, run, runs, first, of_x, of_r, of_self, of_phi, following, B, K, BALL
        )
        bias = run * N + row
        s_before = tl.load(subject_bias + bias, mask=live, other=0.0)
        o_before = tl.load(object_bias + bias, mask=live, other=0.0)
        here = entity + run * N * D + row[:, None] * D + cols
        v = tl.load(here, mask=live[:, None] & inside, other=0.0)
        g = _part(x_rows, r_rows, x1, r1, a1, b1, live, cols, inside, D, BALL)
        g += _part(x_rows, r_rows, x2, r2, a2, b2, more, cols, inside, D, BALL)
        w, s_bias, o_bias = w + w2, s_bias + s_bias2, o_bias + o_bias2
        while tl.max(link, 0) >= 0:
            deeper = link >= 0
            x2, r2, a2, b2, w2, s_bias2, o_bias2, link = _occurrence(
                link, deeper, run, runs, first, of_x, of_r, of_self, of_phi, following, B, K, BALL
            )
            g += _part(x_rows, r_rows, x2, r2, a2, b2, deeper, cols, inside, D, BALL)
            w, s_bias, o_bias = w + w2, s_bias + s_bias2, o_bias + o_bias2
        g += w[:, None] * v
        moved = _ball_step(v, g, lr, C, LIMIT_GAP, SET_BACK_GAP) if BALL else v - lr * g
        tl.store(here, moved, mask=owner[:, None] & inside)
        tl.store(head + bias, -1, mask=owner)
        tl.store(subject_bias + bias, s_before - lr * s_bias, mask=owner & (s_bias != 0))
        tl.store(object_bias + bias, o_before - lr * o_bias, mask=owner)
    else:
        step = tl.load(clock) + offset
        stamp = (tl.load(clock + 1) + offset).to(tl.int32)
        r = tl.load(positives + ((run * capacity + step) * B + program - tiles) * 3 + 1)
        if tl.atomic_xchg(claim + run * R + r, stamp, sem="relaxed") != stamp:
            here = (run * R + r) * D + cols
            gm = tl.load(stretch_gradient + here, mask=inside, other=0.0)
            gr = tl.load(translation_gradient + here, mask=inside, other=0.0)
            m = tl.load(stretch + here, mask=inside, other=0.0)
            rv = tl.load(translation + here, mask=inside, other=0.0)
            moved = _ball_step(rv, gr, lr, C, LIMIT_GAP, SET_BACK_GAP) if BALL else rv - lr * gr
            tl.store(stretch + here, m - lr * gm, mask=inside)
            tl.store(translation + here, moved, mask=inside)
            tl.store(stretch_gradient + here, tl.zeros_like(gm), mask=inside)
            tl.store(translation_gradient + here, tl.zeros_like(gr), mask=inside)
