"""Scores of a row of candidates, turned into weights, for losses and their gradients.

Plain operations that IEEE 754 defines to the bit, so that they give the same on every processor.
"""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from murp.compiling import announce
from murp.kernels.intrinsics import Vectors
from murp.kernels.numba_products import PANEL_BYTES

announce(__name__, "the scores of all entities")

_I64 = ir.IntType(64)

# exp(t) with |t| ≤ log(2)/2 and an error of 4·10⁻⁹, the least for a polynomial of this degree that is 1 at 0.
_EXP = (
    1.0, 1.00000006468332705, 0.500000008080024708, 0.166663256940625214, 0.0416662407127111075, 0.00838110929007860128,
    0.0013948580818093911,
)  # fmt: skip


class Mathematics(Vectors):
    """Writes elementary functions of vectors: plain operations, the same on every processor."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        super().__init__(context, builder, dtype, PANEL_BYTES * 8 // dtype.bitwidth)
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


def _over(results: int, step: Any, last: Any, weighted: bool = False) -> Any:
    """An intrinsic of a row and its columns' numbers (T), T a multiple of a vector, and the row's own number.

    ``step`` is given the scores of a vector's width, to which the other numbers are added, and what it returned before,
    -∞ or 0 at first; it returns new scores or None, and that. ``last`` makes a number of it. ``weighted``: the columns'
    numbers are not added, and ``step`` is given them as weights.
    """

    @intrinsic
    def over(typingctx: Any, row: Any, columns: Any, own: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            mathematics = Mathematics(context, builder, row.dtype)
            scores, beside = (
                context.make_array(kind)(context, builder, given)
                for kind, given in zip(signature.args[:2], arguments[:2], strict=True)
            )
            (length,) = cgutils.unpack_tuple(builder, scores.shape, 1)
            shift = mathematics.spread(arguments[2])
            start = mathematics.zero() if results else mathematics.every(-math.inf)
            kept = [cgutils.alloca_once_value(builder, start) for _ in range(max(results, 1))]
            with cgutils.for_range_slice(builder, _I64(0), length, _I64(mathematics.lanes), _I64) as (at, _):
                score, number = mathematics.load(scores.data, at), mathematics.load(beside.data, at)
                score = builder.fadd(score if weighted else builder.fadd(score, number), shift)
                before = [builder.load(place) for place in kept]
                changed, found = step(mathematics, score, before, *([number] if weighted else []))
                if changed is not None:
                    mathematics.store(changed, scores.data, at)
                for place, value in zip(kept, found, strict=True):
                    builder.store(value, place)
            numbers = [last(mathematics, builder.load(place)) for place in kept]
            return context.make_tuple(builder, signature.return_type, numbers)

        return types.UniTuple(row.dtype, max(results, 1))(row, columns, own), codegen

    return over


def _largest_step(m: Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    return None, [m.larger(kept[0], score)]


def _largest_lane(m: Mathematics, value: Any) -> Any:
    found = m.builder.extract_element(value, ir.IntType(32)(0))
    for lane in range(1, m.lanes):
        other = m.builder.extract_element(value, ir.IntType(32)(lane))
        found = m.builder.select(m.builder.fcmp_ordered("<", found, other), other, found)
    return found


def _exp_step(m: Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    weight = m.exp(score)
    return weight, [m.builder.fadd(kept[0], weight)]


def sigmoid_step(m: Mathematics, score: Any, kept: list[Any], factor: Any = None) -> tuple[Any, list[Any]]:
    weight, _ = m.sigmoid(score)
    return weight, [m.builder.fadd(kept[0], weight)]


def softplus_step(m: Mathematics, score: Any, kept: list[Any], factor: Any = None) -> tuple[Any, list[Any]]:
    weight, decay = m.sigmoid(score)
    value = m.builder.fadd(m.larger(m.zero(), score), m.log_of_one_and(decay))
    return weight, [m.builder.fadd(kept[0], weight), m.builder.fadd(kept[1], value)]


def _weighted_step(m: Mathematics, score: Any, kept: list[Any], weight: Any) -> tuple[Any, list[Any]]:
    sigmoid, (_, softplus) = softplus_step(m, score, [m.zero(), m.zero()])
    return m.builder.fmul(weight, sigmoid), [m.fma(weight, softplus, kept[0])]


# The largest score, NaN apart. The others make the scores into weights and return their sums; with softplus, that of
# it besides. The last one makes w σ(score) of the scores and returns Σ w softplus(score).
largest_of = _over(0, _largest_step, _largest_lane)
exponentials = _over(1, _exp_step, Vectors.sum)
sigmoids_and_softplus = _over(2, softplus_step, Vectors.sum)
weighted_sigmoids = _over(1, _weighted_step, Vectors.sum, weighted=True)
