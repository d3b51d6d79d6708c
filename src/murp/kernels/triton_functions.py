"""Functions of a number for Triton kernels that compute a formula, float32 and float64.

They are made of exp, log, sqrt, sin and cos alone, so that the interpreter on the CPU runs the same code. Near 0 they
are as exact as elsewhere. The formulas are those of :mod:`murp.kernels.numba_functions` where that is possible.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def at_least(x, low):
    """max(x, low), NaN of NaN."""
    return tl.where(x < low, low, x)


@triton.jit
def at_most(x, high):
    """min(x, high), NaN of NaN."""
    return tl.where(x > high, high, x)


@triton.jit
def maximum(a, b):
    """NaN if one of them is."""
    return tl.where(b == b, tl.where(a < b, b, a), b)


@triton.jit
def minimum(a, b):
    """NaN if one of them is."""
    return tl.where(b == b, tl.where(a > b, b, a), b)


@triton.jit
def signed(x, of):
    """x ≥ 0 with the sign of another number."""
    return tl.where(of < 0.0, -x, tl.where(of > 0.0, x, x * of))  # of 0 and NaN: x is 0 or NaN then


@triton.jit
def sign(x):
    return tl.where(x > 0.0, 1.0, tl.where(x < 0.0, -1.0, 0.0)).to(x.dtype)


@triton.jit
def expm1(x):
    """exp(x) - 1. Near 0 it is (u - 1) x / log u with u = exp x: the errors of u - 1 and log u cancel."""
    u = tl.exp(x)
    near = (u > 0.5) & (u < 2.0) & (u != 1.0)
    safe = tl.where(near, u, 2.0)
    return tl.where(u == 1.0, x, tl.where(near, (safe - 1.0) * x / tl.log(safe), u - 1.0))


@triton.jit
def log1p(x):
    """log(1 + x): log u of u = 1 + x, and what the rounding of u has left out."""
    u = 1.0 + x
    rest = (x - (u - 1.0)) / u
    return tl.log(u) + tl.where((u > 0.0) & (u < float("inf")), rest, 0.0)


@triton.jit
def sigmoid(x):
    decay = tl.exp(-tl.abs(x))
    return tl.where(x >= 0.0, 1.0, decay) / (1.0 + decay)


@triton.jit
def softplus(x):
    """log(1 + exp x)."""
    return tl.where(x > 0.0, x, 0.0) + log1p(tl.exp(-tl.abs(x)))


@triton.jit
def sinh(x):
    """½ (t + t/(t + 1)) with t = exp|x| - 1."""
    t = expm1(tl.abs(x))
    return signed(tl.where(t == float("inf"), t, 0.5 * (t + t / (t + 1.0))), x)


@triton.jit
def cosh(x):
    e = tl.exp(tl.abs(x))
    return 0.5 * e + 0.5 / e


@triton.jit
def tanh(x):
    """-t/(t + 2) with t = exp(-2|x|) - 1."""
    t = expm1(-2.0 * tl.abs(x))
    return signed(-t / (t + 2.0), x)


@triton.jit
def asinh(x):
    """log1p(a + a²/(1 + √(1 + a²))) with a = |x|; of large a it is log 2 + log a."""
    a = tl.abs(x)
    some = at_most(a, 1e9)
    square = some * some
    near = log1p(some + square / (1.0 + tl.sqrt(1.0 + square)))
    return signed(tl.where(a > 1e9, tl.log(at_least(a, 1.0)) + 0.6931471805599453, near), x)


@triton.jit
def acosh(x):
    """log1p(t + √(t² + 2t)) with t = x - 1; of large x it is log 2 + log x. NaN below 1."""
    some = at_most(x, 1e9)
    t = some - 1.0
    near = log1p(t + tl.sqrt(t * (t + 2.0)))
    found = tl.where(x > 1e9, tl.log(at_least(x, 1.0)) + 0.6931471805599453, near)
    return tl.where(x < 1.0, float("nan"), found)


@triton.jit
def atanh(x):
    """½ log1p(2a/(1 - a)) with a = |x|."""
    a = tl.abs(x)
    return signed(0.5 * log1p(2.0 * a / (1.0 - a)), x)


@triton.jit
def asin(x):
    """The series of |x| up to ½; beyond, asin a = π/2 - 2 asin √((1 - a)/2).

    Its terms are those of Σ_k a (½·¾ ⋯) a²ᵏ/(2k + 1): each is the one before times a² (2k - 1)²/(2k (2k + 1)).
    """
    TERMS: tl.constexpr = 26 if x.dtype == tl.float64 else 12
    a = tl.abs(x)
    far = a > 0.5
    square = tl.where(far, 0.5 * (1.0 - a), a * a)
    series = tl.full(x.shape, 1.0, x.dtype)
    for i in tl.static_range(1, TERMS):
        series = 1.0 + square * series * (
            (2 * (TERMS - i) - 1) * (2 * (TERMS - i) - 1) / (2 * (TERMS - i) * (2 * (TERMS - i) + 1))
        )
    found = tl.where(far, tl.sqrt(square), a) * series
    return signed(tl.where(far, 1.5707963267948966 - 2.0 * found, found), x)


@triton.jit
def acos(x):
    """π/2 - asin x; near 1 it is 2 asin √((1 - x)/2)."""
    near = asin(at_most(tl.sqrt(0.5 * (1.0 - x)), 0.75))
    return tl.where(x > 0.5, 2.0 * near, 1.5707963267948966 - asin(x))
