"""Weights of a tile of scores, made while the scores are in registers; see :mod:`murp.kernels.numba_all_entities`."""

from __future__ import annotations

import math
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from murp.compiling import announce, kernel
from murp.kernels.numba_products import PAIR, PITCH, POINTS, Registers
from murp.kernels.numba_weights import Mathematics, sigmoid_step, softplus_step

announce(__name__, "the scores of all entities")

_I64 = ir.IntType(64)

# What a tile of scores is turned into: weights of a softmax whose sums are found on the way, weights of a softmax whose
# sums are known, sigmoids and the sums of softplus, sigmoids alone.
SEEK, KNOWN, SOFTPLUS, SIGMOID = range(4)


def _in_registers(of_score: Any, results: int) -> Any:
    """An intrinsic that makes weights of a group of points and a pair of panels, as ``of_score`` says.

    It is given a score, to which the numbers of its column and of its row are added, what it returned before for the
    row's lanes, and the columns' factors; it returns the weight, and that.
    """
    registers = Registers(POINTS, (1,) * PAIR, POINTS, 1)

    @intrinsic
    def block(
        typingctx: Any, group: Any, panel: Any, beside: Any, factors: Any, own: Any, weights: Any, kept: Any
    ) -> Any:
        """Of a group (d, POINTS), panels (PAIR, d, W), numbers and factors of columns (PAIR · W), numbers of points
        (POINTS).

        The weights (POINTS, PITCH), and what is kept of lanes (results, POINTS, W).
        """

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            m = Mathematics(context, builder, group.dtype)
            columns, further, points, out, lanes = (
                context.make_array(kind)(context, builder, given)
                for kind, given in zip(signature.args[2:], arguments[2:], strict=True)
            )
            numbers, times = (
                [m.load(array.data, _I64(p * m.lanes)) for p in range(PAIR)] for array in (columns, further)
            )
            totals = registers.sums(context, builder, signature.args, arguments)
            for b in range(POINTS):
                shift = m.spread(builder.load(builder.gep(points.data, [_I64(b)])))
                places = [_I64((result * POINTS + b) * m.lanes) for result in range(results)]
                found = [m.load(lanes.data, place) for place in places]
                for p in range(PAIR):
                    # Not before the products: rounding each of many large sums would cost bits.
                    score = builder.fadd(builder.fadd(builder.load(totals[b][p]), numbers[p]), shift)
                    weight, found = of_score(m, score, found, times[p])
                    m.store(weight, out.data, _I64(b * PITCH + p * m.lanes))
                for place, value in zip(places, found, strict=True):
                    m.store(value, lanes.data, place)
            return context.get_dummy_value()

        return types.void(group, panel, beside, factors, own, weights, kept), codegen

    return block


def _seek_step(m: Mathematics, score: Any, kept: list[Any], factor: Any) -> tuple[Any, list[Any]]:
    weight = m.exp2(score)
    return weight, [m.builder.fadd(kept[0], weight), m.larger(kept[1], score)]


def _known_step(m: Mathematics, score: Any, kept: list[Any], factor: Any) -> tuple[Any, list[Any]]:
    weight = m.exp2(score)
    return weight, [m.fma(weight, factor, kept[0])]


_seek, _known, _softplus, _sigmoid = (
    _in_registers(step, results)
    for step, results in ((_seek_step, 2), (_known_step, 1), (softplus_step, 2), (sigmoid_step, 1))
)


@kernel
def weigh(
    kind: int, group: Any, panels: Any, start: int, stop: int, beside: Any, factors: Any, own: Any, weights: Any,
    kept: Any,
) -> None:  # fmt: skip
    """The weights (POINTS, PITCH) of a group (d, POINTS) and the columns of the panels start … stop - 1, whole pairs.

    Their sums are added to ``kept`` (2, POINTS, W), lane by lane; those of softplus come second, or the largest scores
    with their numbers.
    """
    width = panels.shape[2]
    for p in range(start, stop, PAIR):
        at = (p - start) * width
        some, columns, times, found = panels[p : p + PAIR], beside[at:], factors[at:], weights[:, at:]
        if kind == SEEK:
            _seek(group, some, columns, times, own, found, kept)
        elif kind == KNOWN:
            _known(group, some, columns, times, own, found, kept)
        elif kind == SIGMOID:
            _sigmoid(group, some, columns, times, own, found, kept)
        else:
            _softplus(group, some, columns, times, own, found, kept)


@intrinsic
def any_above(typingctx: Any, rows: Any, limit: Any) -> Any:
    """Whether one of the numbers of ``rows`` (POINTS, W) is larger than a limit."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        m = Mathematics(context, builder, rows.dtype)
        array = context.make_array(rows)(context, builder, arguments[0])
        largest = m.load(array.data, _I64(0))
        for b in range(1, POINTS):
            largest = m.larger(largest, m.load(array.data, _I64(b * m.lanes)))
        above = m.is_less(m.spread(arguments[1]), largest)
        bits = ir.IntType(m.lanes)
        return builder.icmp_unsigned("!=", builder.bitcast(above, bits), bits(0))

    return types.boolean(rows, rows.dtype), codegen


@intrinsic
def empty(typingctx: Any, kept: Any) -> Any:
    """Begin anew: sums (POINTS, W) of 0 and largest scores (POINTS, W) of -∞."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        m = Mathematics(context, builder, kept.dtype)
        array = context.make_array(kept)(context, builder, arguments[0])
        for b in range(2 * POINTS):
            m.store(m.zero() if b < POINTS else m.every(-math.inf), array.data, _I64(b * m.lanes))
        return context.get_dummy_value()

    return types.void(kept), codegen


@intrinsic
def add(typingctx: Any, to: Any, rows: Any) -> Any:
    """Add contiguous rows (n, m · W) to others."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        m = Mathematics(context, builder, to.dtype)
        ours, theirs = (
            context.make_array(kind)(context, builder, given)
            for kind, given in zip(signature.args, arguments, strict=True)
        )
        size = builder.mul(*cgutils.unpack_tuple(builder, ours.shape, 2))
        with cgutils.for_range_slice(builder, _I64(0), size, _I64(m.lanes), _I64) as (at, _):
            m.store(builder.fadd(m.load(ours.data, at), m.load(theirs.data, at)), ours.data, at)
        return context.get_dummy_value()

    return types.void(to, rows), codegen


@intrinsic
def total_of(typingctx: Any, row: Any) -> Any:
    """The sum of a row (W)."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        m = Mathematics(context, builder, row.dtype)
        return m.sum(m.load(context.make_array(row)(context, builder, arguments[0]).data, _I64(0)))

    return row.dtype(row), codegen


@intrinsic
def powers(typingctx: Any, row: Any) -> Any:
    """Turn the numbers x of a row (W) into 2ˣ."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        m = Mathematics(context, builder, row.dtype)
        data = context.make_array(row)(context, builder, arguments[0]).data
        m.store(m.exp2(m.load(data, _I64(0))), data, _I64(0))
        return context.get_dummy_value()

    return types.void(row), codegen
