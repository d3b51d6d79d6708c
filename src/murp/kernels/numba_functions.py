"""Elementary functions of vectors, written out as plain operations, which are the same on every processor.

:class:`Mathematics` has those of numbers in a known range, for the weights of scores; :class:`Elementary` has those of
all numbers, for formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils

from murp.kernels.intrinsics import Vectors
from murp.kernels.numba_angles import LEAST, quarter_turns
from murp.kernels.numba_products import PANEL_BYTES

# exp(t) with |t| ≤ log(2)/2 and an error of 4·10⁻⁹, the least for a polynomial of this degree that is 1 at 0.
_EXP = (
    1.0, 1.00000006468332705, 0.500000008080024708, 0.166663256940625214, 0.0416662407127111075, 0.00838110929007860128,
    0.0013948580818093911,
)  # fmt: skip


class Mathematics(Vectors):
    """Writes elementary functions of vectors: plain operations, the same on every processor."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        super().__init__(context, builder, dtype, PANEL_BYTES * 8 // dtype.bitwidth)
        self.context = context
        single = dtype.bitwidth == 32
        self.integers = ir.VectorType(ir.IntType(dtype.bitwidth), self.lanes)
        self.mantissa, self.bias = (23, 127) if single else (52, 1023)
        # ln 2 in two parts; n times the first is exact.
        self.ln2 = (0.693359375, -2.12194440e-4) if single else (6.93147180369123816490e-01, 1.9082149292705877e-10)
        self.of_exp = _EXP if single else tuple(1 / math.factorial(k) for k in range(14))
        self.of_log = 7 if single else 17

    def every(self, number: float) -> Any:
        return ir.Constant(self.type, [number] * self.lanes)

    def is_less(self, a: Any, b: Any) -> Any:
        return self.builder.fcmp_ordered("<", a, b)

    def larger(self, a: Any, b: Any) -> Any:
        """Of two numbers; the first where one is NaN."""
        return self.builder.select(self.is_less(a, b), b, a)

    def exp(self, x: Any) -> Any:
        """2ⁿ exp(r) of x ≤ 88 with x = n log 2 + r and |r| ≤ log(2)/2; 0 below -87, NaN of NaN (float64: 709, -708)."""
        x = self.larger(x, self.every(self.least * math.log(2)))
        rounded = self.fma(x, self.every(1 / math.log(2)), self._magic)
        n = self.builder.fsub(rounded, self._magic)
        r = self.fma(n, self.every(-self.ln2[0]), x)
        return self._power(rounded, self.fma(n, self.every(-self.ln2[1]), r), 1.0)

    def exp2(self, x: Any) -> Any:
        """2ⁿ 2ʳ of x ≤ 127 with x = n + r and |r| ≤ 1/2; 0 below -125.5, NaN of NaN (float64: 1023, -1021.5)."""
        x = self.larger(x, self.every(self.least))
        rounded = self.builder.fadd(x, self._magic)
        r = self.builder.fsub(x, self.builder.fsub(rounded, self._magic))
        return self._power(rounded, r, math.log(2))

    @property
    def least(self) -> float:
        """The n of which 2ⁿ is taken for 0: the bits of :meth:`_power` are then all 0."""
        return 1.0 - self.bias

    @property
    def _magic(self) -> Any:
        """Added to it, a number leaves the nearest whole number in the last bits, counted from the least."""
        return self.every(1.5 * 2.0**self.mantissa - self.least)

    def _power(self, rounded: Any, r: Any, unit: float) -> Any:
        """2ⁿ exp(unit · r), with n in the last bits of ``rounded``."""
        build = self.builder
        # 2ⁿ⁻¹ has these bits as its exponent; the series has the other factor of 2. No product is below all powers.
        series = self.every(2 * self.of_exp[-1] * unit ** (len(self.of_exp) - 1))
        for k in range(len(self.of_exp) - 2, -1, -1):
            series = self.fma(series, r, self.every(2 * self.of_exp[k] * unit**k))
        mantissa = ir.Constant(self.integers, [self.mantissa] * self.lanes)
        power = build.shl(build.bitcast(rounded, self.integers), mantissa)
        return build.fmul(series, build.bitcast(power, self.type))

    def log_of_one_and(self, t: Any) -> Any:
        """log(1 + t) = 2 artanh(t / (2 + t)) of t between 0 and 1, by the series of artanh."""
        build = self.builder
        s = build.fdiv(t, build.fadd(t, self.every(2.0)))
        square = build.fmul(s, s)
        series = self.every(1 / (2 * self.of_log + 1))
        for k in range(self.of_log - 1, -1, -1):
            series = self.fma(series, square, self.every(1 / (2 * k + 1)))
        return build.fmul(build.fadd(s, s), series)

    def sigmoid(self, x: Any) -> tuple[Any, Any]:
        """1 / (1 + exp(-x)), and exp(-|x|), of which it is made."""
        build = self.builder
        positive = self.is_less(self.zero(), x)
        minus = build.select(positive, build.fsub(self.zero(), x), x)
        decay = self.exp(minus)
        above = build.select(positive, self.every(1.0), decay)
        return build.fdiv(above, build.fadd(self.every(1.0), decay)), decay


class Elementary(Mathematics):
    """Further functions of vectors: all numbers are allowed, infinity and NaN as well."""

    def negative(self, x: Any) -> Any:
        return self.builder.fneg(x)

    def divide(self, a: Any, b: Any) -> Any:
        return self.builder.fdiv(a, b)

    def absolute(self, x: Any) -> Any:
        sign = 1 << (8 * self.bytes - 1)
        rest = ir.Constant(self.integers, [sign - 1] * self.lanes)
        return self.builder.bitcast(self.builder.and_(self.builder.bitcast(x, self.integers), rest), self.type)

    def with_sign_of(self, x: Any, of: Any) -> Any:
        """|x| with the sign of the other number, for x ≥ 0."""
        sign = ir.Constant(self.integers, [-(1 << (8 * self.bytes - 1))] * self.lanes)
        bits = self.builder.and_(self.builder.bitcast(of, self.integers), sign)
        return self.builder.bitcast(self.builder.or_(self.builder.bitcast(x, self.integers), bits), self.type)

    def select(self, where: Any, a: Any, b: Any) -> Any:
        return self.builder.select(where, a, b)

    def compare(self, sign: str, a: Any, b: Any) -> Any:
        return (self.builder.fcmp_unordered if sign == "!=" else self.builder.fcmp_ordered)(sign, a, b)

    def at_least(self, x: Any, low: Any) -> Any:
        """max(x, low), NaN of NaN."""
        return self.select(self.compare("<", x, low), low, x)

    def at_most(self, x: Any, high: Any) -> Any:
        return self.select(self.compare(">", x, high), high, x)

    def _parts(self, x: Any) -> tuple[Any, Any]:
        """2ⁿ⁻¹ and exp(r) - 1 with x = n log 2 + r and |r| ≤ log(2)/2, of x between the limits of :meth:`_limited`."""
        build = self.builder
        rounded = self.fma(x, self.every(1 / math.log(2)), self._magic)
        n = build.fsub(rounded, self._magic)
        r = self.fma(n, self.every(-self.ln2[1]), self.fma(n, self.every(-self.ln2[0]), x))
        terms = 8 if self.bytes == 4 else 14
        series = self.every(1 / math.factorial(terms - 1))
        for k in range(terms - 2, 0, -1):
            series = self.fma(series, r, self.every(1 / math.factorial(k)))
        mantissa = ir.Constant(self.integers, [self.mantissa] * self.lanes)
        power = build.bitcast(build.shl(build.bitcast(rounded, self.integers), mantissa), self.type)
        return power, build.fmul(series, r)

    def _limited(self, x: Any) -> Any:
        """x as far as the powers of two reach; NaN stays."""
        top = 128.0 if self.bytes == 4 else 1024.0
        return self.at_most(self.at_least(x, self.every(self.least * math.log(2))), self.every(top * math.log(2)))

    def exp(self, x: Any) -> Any:
        """exp(x): ∞ beyond the largest number, 0 below the least that is not denormal."""
        power, less = self._parts(self._limited(x))
        build = self.builder
        found = build.fmul(self.every(2.0), build.fmul(power, build.fadd(less, self.every(1.0))))
        top = math.log(float(np.finfo(np.float32 if self.bytes == 4 else np.float64).max))
        return self.select(self.compare(">", x, self.every(top)), self.every(math.inf), found)

    def expm1(self, x: Any) -> Any:
        """exp(x) - 1, good to rounding near 0."""
        build = self.builder
        power, less = self._parts(self._limited(x))
        half = self.fma(power, less, build.fsub(power, self.every(0.5)))  # of the largest powers twice is infinite
        found = build.fadd(half, half)
        top = math.log(float(np.finfo(np.float32 if self.bytes == 4 else np.float64).max))
        return self.select(self.compare(">", x, self.every(top)), self.every(math.inf), found)

    def _log(self, u: Any, f_of_one: Any) -> Any:
        """log u of u > 0, where log is that of 1 + f for u between √½ and √2; see :mod:`murp.kernels.elementary`."""
        build = self.builder
        low, kind = (0x3F3504F3, 32) if self.bytes == 4 else (0x3FE6A09E667F3BCD, 64)
        bits = build.bitcast(u, self.integers)
        shift = ir.Constant(self.integers, [self.mantissa] * self.lanes)
        exponent = build.ashr(build.sub(bits, ir.Constant(self.integers, [low] * self.lanes)), shift)
        mantissa = build.bitcast(build.sub(bits, build.shl(exponent, shift)), self.type)
        k = build.sitofp(exponent, self.type)
        none = self.compare("==", k, self.zero())
        f = self.select(none, f_of_one, build.fsub(mantissa, self.every(1.0)))
        s = build.fdiv(f, build.fadd(self.every(2.0), f))
        square = build.fmul(s, s)
        terms = 5 if kind == 32 else 10
        series = self.every(1 / (2 * terms - 1))
        for j in range(terms - 2, 0, -1):
            series = self.fma(series, square, self.every(1 / (2 * j + 1)))
        twice = build.fadd(s, s)
        value = self.fma(build.fmul(twice, square), series, twice)
        return self.fma(k, self.every(self.ln2[0]), self.fma(k, self.every(self.ln2[1]), value))

    def _ends_of_log(self, u: Any, found: Any) -> Any:
        found = self.select(self.compare("==", u, self.zero()), self.every(-math.inf), found)
        found = self.select(self.compare("<", u, self.zero()), self.every(math.nan), found)
        # Infinity and NaN have no mantissa.
        return self.select(self.compare("<", u, self.every(math.inf)), found, u)

    def log(self, x: Any) -> Any:
        """log x; denormal numbers are made larger first."""
        kind = np.finfo(np.float32 if self.bytes == 4 else np.float64)
        small = self.compare("<", x, self.every(float(kind.tiny)))
        power = self.mantissa + 1
        u = self.builder.fmul(x, self.select(small, self.every(2.0**power), self.every(1.0)))
        found = self._log(u, self.builder.fsub(u, self.every(1.0)))
        found = self.builder.fsub(found, self.select(small, self.every(power * math.log(2)), self.zero()))
        return self._ends_of_log(x, found)

    def log1p(self, y: Any) -> Any:
        """log(1 + y), good to rounding near 0."""
        u = self.builder.fadd(self.every(1.0), y)
        return self._ends_of_log(u, self._log(u, y))

    def sinh(self, x: Any) -> Any:
        """½ (t + t/(t + 1)) with t = exp|x| - 1."""
        build = self.builder
        t = self.expm1(self.absolute(x))
        half = build.fmul(self.every(0.5), t)
        found = self.fma(self.every(0.5), build.fdiv(t, build.fadd(t, self.every(1.0))), half)
        found = self.select(self.compare("==", t, self.every(math.inf)), t, found)
        return self.with_sign_of(found, x)

    def cosh(self, x: Any) -> Any:
        e = self.exp(self.absolute(x))
        return self.fma(self.every(0.5), e, self.builder.fdiv(self.every(0.5), e))

    def tanh(self, x: Any) -> Any:
        """t/(t + 2) with t = exp|2x| - 1."""
        build = self.builder
        t = self.expm1(build.fadd(self.absolute(x), self.absolute(x)))
        found = build.fdiv(t, build.fadd(t, self.every(2.0)))
        found = self.select(self.compare("==", t, self.every(math.inf)), self.every(1.0), found)
        return self.with_sign_of(found, x)

    def asinh(self, x: Any) -> Any:
        """log1p(a + a²/(1 + √(1 + a²))) with a = |x|; of large a the bracket is 2a, or log 2 + log a."""
        build, a = self.builder, self.absolute(x)
        square = build.fmul(a, a)
        root = self.sqrt(build.fadd(self.every(1.0), square))
        inner = self.log1p(build.fadd(a, build.fdiv(square, build.fadd(self.every(1.0), root))))
        far = self.compare(">", a, self.every(1e9))
        found = self.select(far, build.fadd(self.log(a), self.every(math.log(2))), inner)
        return self.with_sign_of(found, x)

    def acosh(self, x: Any) -> Any:
        """log1p(t + √(t² + 2t)) with t = x - 1; of large x it is log 2 + log x."""
        build = self.builder
        t = build.fsub(x, self.every(1.0))
        root = self.sqrt(build.fmul(t, build.fadd(t, self.every(2.0))))
        far = self.compare(">", x, self.every(1e9))
        found = self.select(far, build.fadd(self.log(x), self.every(math.log(2))), self.log1p(build.fadd(t, root)))
        return self.select(self.compare("<", x, self.every(1.0)), self.every(math.nan), found)

    def atanh(self, x: Any) -> Any:
        """½ log1p(2a/(1 - a)) with a = |x|."""
        build, a = self.builder, self.absolute(x)
        ratio = build.fdiv(build.fadd(a, a), build.fsub(self.every(1.0), a))
        return self.with_sign_of(build.fmul(self.every(0.5), self.log1p(ratio)), x)

    def _quadrant(self, x: Any) -> tuple[Any, Any, Any]:
        """sin r and cos r with x = n π/2 + r and |r| ≤ π/4, and n's last bits; r is NaN of infinity and of NaN."""
        build = self.builder
        magic = self.every(1.5 * 2.0**self.mantissa)
        rounded = self.fma(x, self.every(2 / math.pi), magic)
        n = build.fsub(rounded, magic)
        r = x
        for part in self.half_pi:
            r = self.fma(n, self.every(-part), r)
        r = self.select(self.compare("<", self.absolute(x), self.every(LEAST)), r, self.every(math.nan))
        r, bits = self._of_large_angles(x, r, build.bitcast(rounded, self.integers))
        square = build.fmul(r, r)
        terms = 6 if self.bytes == 4 else 11
        of_sin, of_cos = self.zero(), self.zero()
        for k in range(terms - 1, -1, -1):
            of_sin = self.fma(of_sin, square, self.every((-1) ** k / math.factorial(2 * k + 1)))
            of_cos = self.fma(of_cos, square, self.every((-1) ** k / math.factorial(2 * k)))
        return build.fmul(r, of_sin), of_cos, bits

    def _of_large_angles(self, x: Any, r: Any, bits: Any) -> tuple[Any, Any]:
        """r and n's last bits, of x from 2¹⁶ on those of :func:`murp.kernels.numba_angles.quarter_turns`.

        They are rare: a vector that has some is done lane by lane.
        """
        build, size = self.builder, self.absolute(x)
        finite = self.compare("<", size, self.every(math.inf))
        large = build.and_(self.compare(">=", size, self.every(LEAST)), finite)
        some = build.bitcast(large, ir.IntType(self.lanes))
        places = [cgutils.alloca_once_value(build, value) for value in (r, bits)]
        with (
            build.if_then(build.icmp_unsigned("!=", some, some.type(0)), likely=False),
            cgutils.for_range(build, ir.IntType(64)(self.lanes)) as loop,
            build.if_then(build.extract_element(large, loop.index)),
        ):
            angle = build.extract_element(x, loop.index)
            angle = angle if self.bytes == 8 else build.fpext(angle, ir.DoubleType())
            given = (build.bitcast(angle, ir.IntType(64)),)
            kinds = types.Tuple((types.int64, types.float64))(types.uint64)
            found = self.context.compile_internal(build, lambda bits: quarter_turns(bits), kinds, given)
            turns, rest = cgutils.unpack_tuple(build, found)
            if self.bytes == 4:
                turns, rest = build.trunc(turns, ir.IntType(32)), build.fptrunc(rest, ir.FloatType())
            for place, value in zip(places, (rest, turns), strict=True):
                build.store(build.insert_element(build.load(place), value, loop.index), place)
        return build.load(places[0]), build.load(places[1])

    @property
    def half_pi(self) -> tuple[float, ...]:
        """π/2 in three parts, each the nearest number to what the others leave; a fused product with n is exact."""
        if self.bytes == 4:
            return 1.5707963705062866, -4.371138828673793e-08, -1.7151245100059113e-15
        return 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33

    def _turned(self, even: Any, odd: Any, bits: Any, minus: Any) -> Any:
        """Of two values the one for n even or odd, with a minus where the second bit of ``minus`` is 1."""
        build = self.builder
        one, two = (ir.Constant(self.integers, [i] * self.lanes) for i in (1, 2))
        zero = ir.Constant(self.integers, [0] * self.lanes)
        value = build.select(build.icmp_signed("==", build.and_(bits, one), zero), even, odd)
        return build.select(build.icmp_signed("==", build.and_(minus, two), zero), value, build.fneg(value))

    def sin(self, x: Any) -> Any:
        sin, cos, bits = self._quadrant(x)
        return self._turned(sin, cos, bits, bits)

    def cos(self, x: Any) -> Any:
        sin, cos, bits = self._quadrant(x)
        return self._turned(cos, sin, bits, self.builder.add(bits, ir.Constant(self.integers, [1] * self.lanes)))

    def asin(self, x: Any) -> Any:
        """The series of |x| up to ½; beyond, asin a = π/2 - 2 asin √((1 - a)/2)."""
        build, a = self.builder, self.absolute(x)
        far = self.compare(">", a, self.every(0.5))
        square = self.select(far, build.fmul(self.every(0.5), build.fsub(self.every(1.0), a)), build.fmul(a, a))
        terms = 12 if self.bytes == 4 else 26
        series = self.zero()
        for k in range(terms - 1, -1, -1):
            series = self.fma(series, square, self.every(math.comb(2 * k, k) / 4**k / (2 * k + 1)))
        found = build.fmul(self.select(far, self.sqrt(square), a), series)
        turned = self.fma(self.every(-2.0), found, self.every(math.pi / 2))
        return self.with_sign_of(self.select(far, turned, found), x)

    def acos(self, x: Any) -> Any:
        """π/2 - asin x; near 1 it is 2 asin √((1 - x)/2)."""
        build = self.builder
        half = self.sqrt(build.fmul(self.every(0.5), build.fsub(self.every(1.0), x)))
        near = self.asin(self.at_most(half, self.every(0.75)))
        usual = build.fsub(self.every(math.pi / 2), self.asin(x))
        return self.select(self.compare(">", x, self.every(0.5)), build.fadd(near, near), usual)

    def sign(self, x: Any) -> Any:
        above = self.select(self.compare(">", x, self.zero()), self.every(1.0), self.zero())
        return self.select(self.compare("<", x, self.zero()), self.every(-1.0), above)
