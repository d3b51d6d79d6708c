"""Scores of a row of candidates, turned into weights, for losses and their gradients.

Plain operations that IEEE 754 defines to the bit, so that they give the same on every processor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from murp.compiling import announce, kernel
from murp.kernels.intrinsics import Vectors, fma
from murp.kernels.numba_products import PANEL_BYTES

announce(__name__, "the scores of all entities")

# What a tile of scores is turned into: weights of a softmax whose sums are found on the way, weights of a softmax whose
# sums are known, sigmoids and the sums of softplus, sigmoids alone.
SEEK, KNOWN, SOFTPLUS, SIGMOID = range(4)


class Mathematics(Vectors):
    """Writes elementary functions of vectors: plain operations, the same on every processor."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        super().__init__(context, builder, dtype, PANEL_BYTES * 8 // dtype.bitwidth)
        single = dtype.bitwidth == 32
        self.integers = ir.VectorType(ir.IntType(dtype.bitwidth), self.lanes)
        self.mantissa, self.bias = (23, 127) if single else (52, 1023)
        # ln 2 in two parts; n times the first is exact. Below the least x 2ⁿ has no bits of its own.
        self.ln2 = (0.693359375, -2.12194440e-4) if single else (6.93147180369123816490e-01, 1.9082149292705877e-10)
        self.least = -87.0 if single else -708.0
        self.of_exp, self.of_log = (7, 7) if single else (13, 17)

    def every(self, number: float) -> Any:
        return ir.Constant(self.type, [number] * self.lanes)

    def is_less(self, a: Any, b: Any) -> Any:
        return self.builder.fcmp_ordered("<", a, b)

    def larger(self, a: Any, b: Any) -> Any:
        """Of two numbers; the first where one is NaN."""
        return self.builder.select(self.is_less(a, b), b, a)

    def exp(self, x: Any) -> Any:
        """2ⁿ exp(r) of x ≤ 1 with x = n log 2 + r and |r| ≤ log(2)/2; 0 below the least x, NaN of NaN."""
        build = self.builder
        below = self.is_less(x, self.every(self.least))
        bounded = build.select(below, self.every(self.least), x)  # x itself where it is NaN, and so is all that follows
        # Added to it, a number leaves the nearest whole number in the last bits.
        magic = self.every(1.5 * 2.0**self.mantissa)
        rounded = self.fma(bounded, self.every(1 / math.log(2)), magic)
        n = build.fsub(rounded, magic)
        r = self.fma(n, self.every(-self.ln2[0]), bounded)
        r = self.fma(n, self.every(-self.ln2[1]), r)
        series = self.every(1 / math.factorial(self.of_exp))
        for k in range(self.of_exp - 1, -1, -1):
            series = self.fma(series, r, self.every(1 / math.factorial(k)))
        shift, one = (
            ir.Constant(self.integers, [number] * self.lanes) for number in (self.mantissa, self.bias << self.mantissa)
        )
        power = build.add(build.shl(build.bitcast(rounded, self.integers), shift), one)
        found = build.fmul(series, build.bitcast(power, self.type))
        return build.select(below, self.zero(), found)

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
            i64 = ir.IntType(64)
            with cgutils.for_range_slice(builder, i64(0), length, i64(mathematics.lanes), i64) as (at, _):
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


def _sigmoid_step(m: Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    weight, _ = m.sigmoid(score)
    return weight, [m.builder.fadd(kept[0], weight)]


def _softplus_step(m: Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    weight, decay = m.sigmoid(score)
    value = m.builder.fadd(m.larger(m.zero(), score), m.log_of_one_and(decay))
    return weight, [m.builder.fadd(kept[0], weight), m.builder.fadd(kept[1], value)]


def _weighted_step(m: Mathematics, score: Any, kept: list[Any], weight: Any) -> tuple[Any, list[Any]]:
    sigmoid, (_, softplus) = _softplus_step(m, score, [m.zero(), m.zero()])
    return m.builder.fmul(weight, sigmoid), [m.fma(weight, softplus, kept[0])]


# The largest score, NaN apart. The others make the scores into weights and return their sums; with softplus, that of
# it besides. The last one makes w σ(score) of the scores and returns Σ w softplus(score).
largest_of = _over(0, _largest_step, _largest_lane)
exponentials = _over(1, _exp_step, Vectors.sum)
_sigmoids = _over(1, _sigmoid_step, Vectors.sum)
sigmoids_and_softplus = _over(2, _softplus_step, Vectors.sum)
weighted_sigmoids = _over(1, _weighted_step, Vectors.sum, weighted=True)


@kernel
def weigh(kind: int, scores: Any, beside: Any, own: Any, total: Any, weights: Any) -> None:
    """Make scores (R, T) into weights and add their sums to ``weights`` (R), those of softplus to ``total`` (R)."""
    for b in range(len(own)):
        if kind == KNOWN:
            weights[b] += exponentials(scores[b], beside, own[b])[0]
        elif kind == SIGMOID:
            weights[b] += _sigmoids(scores[b], beside, own[b])[0]
        else:
            of_weights, of_values = sigmoids_and_softplus(scores[b], beside, own[b])
            weights[b] += of_weights
            total[b] += of_values


@kernel
def weigh_seeking(scores: Any, beside: Any, largest: Any, total: Any, kept: Any, zeros: Any) -> None:
    """Make scores (R, T) into exp(score - the largest so far) and add their sums to ``total`` (R).

    ``kept`` takes what all that was found before has to be multiplied by.
    """
    zero = scores.dtype.type(0)
    kept[:] = zero
    for b in range(len(largest)):
        before = largest[b]
        largest[b] = max(before, largest_of(scores[b], beside, zero)[0])
        kept[b] = before - _finite(largest[b])
    exponentials(kept, zeros, zero)
    for b in range(len(largest)):
        total[b] = fma(total[b], kept[b], exponentials(scores[b], beside, -_finite(largest[b]))[0])


@kernel
def _finite(largest: Any) -> Any:
    """0 in place of -∞, the largest score of a row without candidates."""
    return largest if largest > -np.inf else type(largest)(0)
