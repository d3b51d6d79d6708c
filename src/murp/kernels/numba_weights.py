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
from murp.kernels.numba_functions import Mathematics

announce(__name__, "the scores of all entities")

_I64 = ir.IntType(64)


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
