"""Weights of a tile of scores, made while the scores are in registers; see :mod:`murp.kernels.numba_all_entities`."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from murp.compiling import announce, kernel
from murp.kernels.numba_functions import Mathematics
from murp.kernels.numba_products import PAIR, POINTS, Registers
from murp.kernels.numba_weights import sigmoid_step, softplus_step

announce(__name__, "the scores of all entities")

_I64 = ir.IntType(64)

# What a tile of scores is turned into: weights of a softmax whose sums are found on the way, weights of a softmax whose
# sums are known, times the columns' factors, sigmoids and the sums of softplus, sigmoids alone.
SEEK, KNOWN, SOFTPLUS, SIGMOID = range(4)


def _in_registers(columns: int, of_score: Any, unit: float, results: int) -> Any:
    """An intrinsic that makes weights of so many columns and a group of rows, as ``of_score`` says.

    It is given an inner product in a unit, to which the numbers of its column and of its row are added, what it
    returned before for the row, and the column's factor; it returns the weight, and that.
    """
    registers = Registers(columns, PAIR)

    @intrinsic
    def block(
        typingctx: Any, points: Any, group: Any, beside: Any, factors: Any, own: Any, weights: Any, kept: Any
    ) -> Any:
        """Of points (columns, d), a group (PAIR, d, W), numbers and factors of columns (columns), numbers of rows
        (PAIR · W).

        The weights (columns, PAIR · W), and what is kept of rows (results, PAIR · W).
        """

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            m = Mathematics(context, builder, group.dtype)
            numbers, further, rows, out, kept_data = (
                context.make_array(kind)(context, builder, given).data
                for kind, given in zip(signature.args[2:], arguments[2:], strict=True)
            )

            def places(number: int) -> list[Any]:
                return [_I64((number * PAIR + p) * m.lanes) for p in range(PAIR)]

            totals = registers.sums(context, builder, signature.args, arguments)
            shifts = [m.load(rows, place) for place in places(0)]
            found = [[m.load(kept_data, places(result)[p]) for result in range(results)] for p in range(PAIR)]
            for b in range(columns):
                number, factor = (m.spread(builder.load(builder.gep(data, [_I64(b)]))) for data in (numbers, further))
                for p in range(PAIR):
                    # Not before the products: rounding each of many large sums would cost bits.
                    score = builder.fadd(m.fma(builder.load(totals[b][p]), m.every(unit), number), shifts[p])
                    weight, found[p] = of_score(m, score, found[p], factor)
                    m.store(weight, out, places(b)[p])
            for p in range(PAIR):
                for result, value in enumerate(found[p]):
                    m.store(value, kept_data, places(result)[p])
            return context.get_dummy_value()

        return types.void(points, group, beside, factors, own, weights, kept), codegen

    return block


def _seek_step(m: Mathematics, score: Any, kept: list[Any], factor: Any) -> tuple[Any, list[Any]]:
    weight = m.exp2(score)
    return weight, [m.builder.fadd(kept[0], weight), m.larger(kept[1], score)]


def _known_step(m: Mathematics, score: Any, kept: list[Any], factor: Any) -> tuple[Any, list[Any]]:
    weight = m.builder.fmul(m.exp2(score), factor)
    return weight, [m.builder.fadd(kept[0], weight)]


LOG2E = 1 / math.log(2)  # exponentials are powers of 2
_STEPS = ((_seek_step, LOG2E, 2), (_known_step, LOG2E, 1), (softplus_step, 1.0, 2), (sigmoid_step, 1.0, 1))
_seek, _known, _softplus, _sigmoid = (_in_registers(POINTS, *step) for step in _STEPS)
_seek_one, _known_one, _softplus_one, _sigmoid_one = (_in_registers(1, *step) for step in _STEPS)


@kernel
def weigh(
    kind: int, points: Any, group: Any, beside: Any, factors: Any, own: Any, weights: Any, kept: Any
) -> None:  # fmt: skip
    """The weights (T, PAIR · W) of columns, points (T, d) with numbers and factors (T), and a group of rows (PAIR, d,
    W) with numbers (PAIR · W).

    Their sums are added to ``kept`` (2, PAIR · W); those of softplus come second, or the largest scores with their
    numbers.
    """
    whole = len(points) - len(points) % POINTS
    for n in range(0, whole, POINTS):
        some, columns, times, found = points[n:], beside[n:], factors[n:], weights[n:]
        if kind == SEEK:
            _seek(some, group, columns, times, own, found, kept)
        elif kind == KNOWN:
            _known(some, group, columns, times, own, found, kept)
        elif kind == SIGMOID:
            _sigmoid(some, group, columns, times, own, found, kept)
        else:
            _softplus(some, group, columns, times, own, found, kept)
    for n in range(whole, len(points)):
        some, columns, times, found = points[n:], beside[n:], factors[n:], weights[n:]
        if kind == SEEK:
            _seek_one(some, group, columns, times, own, found, kept)
        elif kind == KNOWN:
            _known_one(some, group, columns, times, own, found, kept)
        elif kind == SIGMOID:
            _sigmoid_one(some, group, columns, times, own, found, kept)
        else:
            _softplus_one(some, group, columns, times, own, found, kept)


@intrinsic
def powers(typingctx: Any, row: Any) -> Any:
    """Turn the numbers x of a row (m · W) into 2ˣ."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        m = Mathematics(context, builder, row.dtype)
        array = context.make_array(row)(context, builder, arguments[0])
        (size,) = cgutils.unpack_tuple(builder, array.shape, 1)
        with cgutils.for_range_slice(builder, _I64(0), size, _I64(m.lanes), _I64) as (at, _):
            m.store(m.exp2(m.load(array.data, at)), array.data, at)
        return context.get_dummy_value()

    return types.void(row), codegen
