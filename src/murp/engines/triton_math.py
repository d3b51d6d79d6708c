"""What every Triton kernel of the engine uses: sums of several numbers at once, functions of one number, draws.

Only exp, log and sqrt are used, so that the interpreter on the CPU runs the same code.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def add2(a, b, c, d):
    return a + c, b + d


@triton.jit
def add3(a, b, c, d, e, f):
    return a + d, b + e, c + f


@triton.jit
def add5(a, b, c, d, e, f, g, h, i, j):
    return a + f, b + g, c + h, d + i, e + j


@triton.jit
def columns(J: tl.constexpr, W: tl.constexpr):
    """The columns of a row as J parts of W, shape (J, W).

    The threads of a warp share the W columns of a part and then take further rows; the parts stay within a thread,
    whose own additions cost less than those between threads.
    """
    return tl.arange(0, J)[:, None] * W + tl.arange(0, W)[None, :]


@triton.jit
def sum2(a, b):
    """Sums over the columns of two vectors (J, W)."""
    a, b = tl.reduce((a, b), 0, add2)
    return tl.reduce((a, b), 0, add2)


@triton.jit
def sum3(a, b, c):
    """Sums over the columns of three vectors (J, W)."""
    a, b, c = tl.reduce((a, b, c), 0, add3)
    return tl.reduce((a, b, c), 0, add3)


@triton.jit
def row_sum(a):
    """Sums over the columns of rows (n, J, W) → (n,)."""
    return tl.sum(tl.sum(a, 1), 1)


@triton.jit
def row_sum2(a, b):
    """:func:`row_sum` of two at once."""
    a, b = tl.reduce((a, b), 1, add2)
    return tl.reduce((a, b), 1, add2)


@triton.jit
def row_sum3(a, b, c):
    """:func:`row_sum` of three at once."""
    a, b, c = tl.reduce((a, b, c), 1, add3)
    return tl.reduce((a, b, c), 1, add3)


@triton.jit
def small_artanh_over(q):
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
def artanh_over(q):
    """artanh(q)/q for 0 ≤ q < 1; the logarithm would cancel for small q."""
    large = tl.maximum(q, 0.35)
    long = 0.5 * tl.log((1.0 + large) / (1.0 - large)) / large
    return tl.where(q < 0.35, small_artanh_over(tl.minimum(q, 0.35)), long)


@triton.jit
def tanh_over(h):
    """tanh(h)/h for h ≥ 0: a Padé approximant where the exponential would cancel."""
    x = h * h
    above = 2027025.0 + x * (270270.0 + x * (6930.0 + x * 36.0))
    below = 2027025.0 + x * (945945.0 + x * (51975.0 + x * (630.0 + x)))
    large = tl.where(h < 0.6, 1.0, h)
    return tl.where(h < 0.6, above / below, (1.0 - 2.0 / (tl.exp(2.0 * large) + 1.0)) / large)


@triton.jit
def widened(x, REAL: tl.constexpr):
    """Numbers of a table in the precision of the step, REAL; by way of float32, since the interpreter knows no other
    way from bfloat16 to float64."""
    if x.dtype == REAL:
        return x
    else:
        return x.to(tl.float32).to(REAL)


@triton.jit
def draw(seed, position, number):
    """Uniform in 0 … number-1, by multiplying a 32-bit Philox number: off uniform by number/2³² at most."""
    bits = tl.randint(seed, position).to(tl.uint32, bitcast=True).to(tl.uint64)
    return ((bits * number.to(tl.uint64)) >> 32).to(tl.int64)


@triton.jit(do_not_specialize=["N", "total"])
def draw_kernel(out, seeds, N, total, TILE: tl.constexpr):
    """The false objects as the gradient kernel draws them, for inspection: out (runs, total)."""
    position = tl.program_id(0) * TILE + tl.arange(0, TILE)
    run = tl.program_id(1)
    tl.store(out + run * total + position, draw(tl.load(seeds + run), position, N), mask=position < total)
