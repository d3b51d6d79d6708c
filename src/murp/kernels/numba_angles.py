"""Large angles: the nearest multiple of π/2, and what is left, exact for every double.

A number M·2ᴱ of 53 bits times 2/π needs those bits of 2/π whose multiples are not whole turns, and as many after them
as may cancel and as the result has (Payne and Hanek: Radian reduction for trigonometric functions, 1983). Here they are
192 bits: no double is nearer to a multiple of π/2 than 2⁻⁶¹ of it, so that more than 70 right bits are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.compiling import kernel
from murp.kernels.intrinsics import fma

LEAST = 2.0**16  # for angles from here on
_DIGITS = (
    "28be60db9391054a7f09d5f47d4d377036d8a5664f10e4107f9458eaf7aef1586dc91b8e909374b801924bba827464873f87"
    "7ac72c4a69cfba208d7d4baed1213a671c09ad17df904e64758e60d4ce7d272117e2ef7e4a0ec7fe25fff7816603fbcbc462"
    "d6829b47db4d9fb3c9f2c26dd3d18fd9a797fa8b5d49eeb1faf97c5ecf41ce7de294a4ba9afed7ec47e357421580cc11bf1e"
    "daeafc33ef0"
)
_BITS = 1242  # of 2/π after the point, that these are; before them 38 zeros make whole words
_WORDS = tuple(np.uint64(int(_DIGITS, 16) >> 64 * i & 2**64 - 1) for i in range(19, -1, -1))
# π/2 in two parts, and 2⁻⁶⁴ for a fraction's words.
_HALF_PI, _REST = 1.5707963267948966, 6.123233995736766e-17
_ONE, _HALF, _LOW = np.uint64(1), np.uint64(32), np.uint64(2**32 - 1)
_TOP, _LAST = np.uint64(63), np.uint64(62)


@kernel
def _high(a: Any, b: Any) -> Any:
    """The upper 64 bits of the product of two numbers of 64 bits."""
    a1, a0, b1, b0 = a >> _HALF, a & _LOW, b >> _HALF, b & _LOW
    middle = a1 * b0 + (a0 * b0 >> _HALF)
    other = a0 * b1 + (middle & _LOW)
    return a1 * b1 + (middle >> _HALF) + (other >> _HALF)


@kernel
def quarter_turns(bits: Any) -> Any:
    """(n mod 4, r) with x = n π/2 + r and |r| ≤ π/4, of the bits of a finite double x from 2¹⁶ on, of any sign."""
    exponent = (bits >> np.uint64(52)) & np.uint64(0x7FF)
    mantissa = (bits & np.uint64(2**52 - 1)) | np.uint64(2**52)
    # The bits of 2/π before this place make multiples of four quarter turns.
    place = exponent - np.uint64(1039)
    word, shift = np.int64(place >> np.uint64(6)), place & _TOP
    back = _TOP - shift
    first = (_WORDS[word] << shift) | (_WORDS[word + 1] >> _ONE >> back)
    second = (_WORDS[word + 1] << shift) | (_WORDS[word + 2] >> _ONE >> back)
    third = (_WORDS[word + 2] << shift) | (_WORDS[word + 3] >> _ONE >> back)
    # Their product with the mantissa, modulo four quarter turns: two bits, then the fraction.
    low = mantissa * third
    carried = _high(mantissa, third)
    middle = mantissa * second + carried
    top = mantissa * first + _high(mantissa, second)
    if middle < carried:
        top += _ONE
    turns = np.int64(top >> _LAST)
    a = (top << np.uint64(2)) | (middle >> _LAST)
    b = (middle << np.uint64(2)) | (low >> _LAST)
    c = low << np.uint64(2)
    above = a >> _TOP == _ONE  # more than half a quarter turn: what is left is counted from the next one back
    if above:
        turns += 1
        a, b, c = ~a, ~b, ~c
    scale = 2.0**-64
    while a >> _TOP == np.uint64(0) and scale > 2.0**-200:
        a, b, c = (a << _ONE) | (b >> _TOP), (b << _ONE) | (c >> _TOP), c << _ONE
        scale *= 0.5
    upper = np.float64(np.int64(a >> np.uint64(11))) * 2048.0 * scale
    lower = np.float64(np.int64(((a & np.uint64(0x7FF)) << np.uint64(42)) | (b >> np.uint64(22)))) * 2.0**-42 * scale
    r = upper * _HALF_PI
    r += fma(upper, _HALF_PI, -r) + (upper * _REST + lower * _HALF_PI)
    if above:
        r = -r
    if bits >> _TOP == _ONE:
        return (4 - turns) & 3, -r
    return turns & 3, r
