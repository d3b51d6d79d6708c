"""Logarithm and exponential of many numbers: loops of plain operations, which become vector instructions.

Every operation is one that IEEE 754 defines to the bit, so the results are the same on every processor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from murp.compiling import kernel
from murp.kernels.intrinsics import fma

_LN2 = math.log(2.0)
_LN2_LOW = 1.9082149292705877e-10  # ln 2 less its first 32 bits, below
_LN2_HIGH = 6.93147180369123816490e-01
_PER_LN2 = 1 / _LN2
# Added to a number below 2⁵¹ it leaves the nearest whole number in the last bits.
_ROUND = 1.5 * 2.0**52
_ONE_BITS = 0x3FF0000000000000
# The bits of √½, from which on to √2 an exponent is counted as 0, and how many of them are the mantissa's.
FORMATS = {
    np.dtype(np.float32): np.array([0x3F3504F3, 23], dtype=np.int32),
    np.dtype(np.float64): np.array([0x3FE6A09E667F3BCD, 52], dtype=np.int64),
}


@kernel
def log1p(y: Any, u: Any, bits: Any, form: Any, out: Any) -> None:
    """log(1 + y) of y ≥ 0 (n) into ``out`` (n); ``u`` (n) is scratch, ``bits`` the same as integers.

    1 + y = 2ᵏ m with m between √½ and √2, so its logarithm is k log 2 + 2 artanh(s), s = f/(2 + f), f = m - 1, where
    f is y itself if k = 0; |s| < 0.172, and ten terms of the series of artanh are good to the last bit of a double.
    """
    real = y.dtype.type
    low, shift = form[0], form[1]
    for j in range(len(out)):
        u[j] = real(1) + y[j]
    for j in range(len(out)):
        exponent = (bits[j] - low) >> shift
        bits[j] -= exponent << shift
        out[j] = exponent
    for j in range(len(out)):
        k = out[j]
        f = y[j] if k == real(0) else u[j] - real(1)
        s = f / (real(2) + f)
        q = s * s
        series = real(1 / 19)
        series = fma(series, q, real(1 / 17))
        series = fma(series, q, real(1 / 15))
        series = fma(series, q, real(1 / 13))
        series = fma(series, q, real(1 / 11))
        series = fma(series, q, real(1 / 9))
        series = fma(series, q, real(1 / 7))
        series = fma(series, q, real(1 / 5))
        series = fma(series, q, real(1 / 3))
        twice = s + s
        log = fma(twice * q, series, fma(k, real(_LN2), twice))
        out[j] = log if y[j] < real(np.inf) else y[j]  # infinity and NaN have no mantissa


@kernel
def exp_minus(a: Any, u: Any, bits: Any, out: Any) -> None:
    """exp(-a) of a ≥ 0 (n), float64, into ``out`` (n); ``u`` (n) is scratch, ``bits`` the same as integers.

    a = n log 2 + r with |r| ≤ log(2)/2; exp(-r) by its series, whose 14 terms are good to the last bit, and 2⁻ⁿ by its
    bits. From 708 on, where a double has no further power of two of full precision, the result is that of 708.
    """
    for j in range(len(out)):
        u[j] = _ROUND - min(a[j], 708.0) * _PER_LN2
    for j in range(len(out)):
        n = u[j] - _ROUND  # -n
        r = fma(n, -_LN2_LOW, fma(n, -_LN2_HIGH, -min(a[j], 708.0)))
        series = 1 / 6227020800
        series = fma(series, r, 1 / 479001600)
        series = fma(series, r, 1 / 39916800)
        series = fma(series, r, 1 / 3628800)
        series = fma(series, r, 1 / 362880)
        series = fma(series, r, 1 / 40320)
        series = fma(series, r, 1 / 5040)
        series = fma(series, r, 1 / 720)
        series = fma(series, r, 1 / 120)
        series = fma(series, r, 1 / 24)
        series = fma(series, r, 1 / 6)
        series = fma(series, r, 0.5)
        series = fma(series, r, 1.0)
        out[j] = fma(series, r, 1.0)
    for j in range(len(out)):
        bits[j] = _ONE_BITS + (bits[j] << 52)
    for j in range(len(out)):
        out[j] = out[j] * u[j] if a[j] == a[j] else a[j]
