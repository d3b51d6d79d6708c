"""Operations that Numba does not offer, each one machine instruction or a few.

``fma(a, b, c)`` is ab + c with one rounding, by IEEE 754 the same number on every processor: an instruction on all
made since 2013, a slow library call on older ones.

Sums over a row are made eight lanes at a time. Lane l of ⟨x,y⟩ adds x_j y_j for j = l, l + 8, l + 16, … by ``fma``;
the lanes are then added in pairs, ((0+4)+(2+6)) + ((1+5)+(3+7)), and what is left beyond the last whole eight, added
one by one, comes last. So the bits of a sum depend on the numbers alone, not on the width of a vector.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
_I64, _I32 = ir.IntType(64), ir.IntType(32)
_PAUSE = {"x86_64": "pause", "AMD64": "pause", "aarch64": "yield", "arm64": "yield"}.get(platform.machine(), "")


@intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """ab + c, rounded once; all three of one type."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return (a(a, b, c), codegen) if a == b == c else None


@intrinsic
def take(typingctx: Any, counters: Any, place: Any, number: Any) -> Any:
    """``counters[place]``, to which ``number`` is added in the same instant: no two threads take the same."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _cell(context, builder, signature, arguments), arguments[2], "seq_cst")

    return types.int64(counters, types.int64, types.int64), codegen


@intrinsic
def read(typingctx: Any, counters: Any, place: Any) -> Any:
    """``counters[place]`` as other threads have left it, and everything that they wrote before."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_cell(context, builder, signature, arguments), "acquire", 8)

    return types.int64(counters, types.int64), codegen


@intrinsic
def write(typingctx: Any, counters: Any, place: Any, value: Any) -> Any:
    """Set ``counters[place]``; whoever reads it there sees everything written before."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _cell(context, builder, signature, arguments), "release", 8)
        return context.get_dummy_value()

    return types.void(counters, types.int64, types.int64), codegen


@intrinsic
def pause(typingctx: Any) -> Any:
    """Tell the processor that a loop waits."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _PAUSE:
            builder.asm(ir.FunctionType(ir.VoidType(), ()), _PAUSE, "", (), side_effect=True)
        return context.get_dummy_value()

    return types.void(), codegen


sleep_microseconds = types.ExternalFunction("usleep", types.int32(types.uint32))


def _cell(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    counters = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(counters.data, [arguments[1]])


class Vectors:
    """Writes vector instructions for rows of one type of number; rows are contiguous."""

    def __init__(self, context: Any, builder: Any, dtype: Any, lanes: int = LANES) -> None:
        self.builder = builder
        self.real = context.get_data_type(dtype)
        self.bytes = dtype.bitwidth // 8
        self.lanes = lanes
        self.type = ir.VectorType(self.real, lanes)
        name = f"llvm.fma.v{lanes}f{dtype.bitwidth}"
        self._fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(self.type, (self.type,) * 3), name)

    def zero(self) -> Any:
        return ir.Constant(self.type, [0.0] * self.lanes)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, (a, b, c))

    def at(self, row: Any, offset: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(row, [offset]), self.type.as_pointer())

    def load(self, row: Any, offset: Any) -> Any:
        return self.builder.load(self.at(row, offset), align=self.bytes)

    def store(self, value: Any, row: Any, offset: Any) -> None:
        self.builder.store(value, self.at(row, offset), align=self.bytes)

    def spread(self, number: Any) -> Any:
        """The number in every lane."""
        nothing = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(nothing, number, _I32(0))
        return self.builder.shuffle_vector(
            first, nothing, ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        )

    def sum(self, value: Any) -> Any:
        """Of the lanes, in pairs."""
        width = self.lanes
        while width > 1:
            width //= 2
            halves = [ir.Constant(ir.VectorType(_I32, width), range(start, start + width)) for start in (0, width)]
            low, high = (self.builder.shuffle_vector(value, value, half) for half in halves)
            value = self.builder.fadd(low, high)
        return self.builder.extract_element(value, _I32(0))


def sums(rows: int, pairs: Sequence[tuple[int, int]]) -> Callable[..., Any]:
    """A function of so many rows of one length whose result is the tuple of the inner products of the ``pairs``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(context, builder, signature.args[0].dtype)
        arrays = [
            context.make_array(kind)(context, builder, a) for kind, a in zip(signature.args, arguments, strict=True)
        ]
        (length,) = cgutils.unpack_tuple(builder, arrays[0].shape, 1)
        whole = builder.and_(length, _I64(-LANES))
        totals = [cgutils.alloca_once(builder, vectors.type) for _ in pairs]
        rests = [cgutils.alloca_once(builder, vectors.real) for _ in pairs]
        for total, rest in zip(totals, rests, strict=True):
            builder.store(vectors.zero(), total)
            builder.store(vectors.real(0.0), rest)
        with cgutils.for_range_slice(builder, _I64(0), whole, _I64(LANES), _I64) as (at, _):
            found = [vectors.load(array.data, at) for array in arrays]
            for (a, b), total in zip(pairs, totals, strict=True):
                builder.store(vectors.fma(found[a], found[b], builder.load(total)), total)
        with cgutils.for_range_slice(builder, whole, length, _I64(1), _I64) as (at, _):
            found = [builder.load(builder.gep(array.data, [at])) for array in arrays]
            for (a, b), rest in zip(pairs, rests, strict=True):
                builder.store(builder.fma(found[a], found[b], builder.load(rest)), rest)
        values = [
            builder.fadd(vectors.sum(builder.load(total)), builder.load(rest))
            for total, rest in zip(totals, rests, strict=True)
        ]
        return context.make_tuple(builder, signature.return_type, values)

    return _of_rows(rows, 0, lambda dtype: types.UniTuple(dtype, len(pairs)), codegen)


def add_multiples(terms: int) -> Callable[..., Any]:
    """A function (y, x₁, …, a₁, …) that adds a₁x₁ + … to the row y, the last term first."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vectors = Vectors(context, builder, signature.args[0].dtype)
        arrays = [
            context.make_array(kind)(context, builder, a)
            for kind, a in zip(signature.args[: terms + 1], arguments[: terms + 1], strict=True)
        ]
        factors = arguments[terms + 1 :]
        spread = [vectors.spread(factor) for factor in factors]
        (length,) = cgutils.unpack_tuple(builder, arrays[0].shape, 1)
        whole = builder.and_(length, _I64(-LANES))
        with cgutils.for_range_slice(builder, _I64(0), whole, _I64(LANES), _I64) as (at, _):
            value = vectors.load(arrays[0].data, at)
            for term in reversed(range(terms)):
                value = vectors.fma(spread[term], vectors.load(arrays[term + 1].data, at), value)
            vectors.store(value, arrays[0].data, at)
        with cgutils.for_range_slice(builder, whole, length, _I64(1), _I64) as (at, _):
            place = builder.gep(arrays[0].data, [at])
            value = builder.load(place)
            for term in reversed(range(terms)):
                value = builder.fma(factors[term], builder.load(builder.gep(arrays[term + 1].data, [at])), value)
            builder.store(value, place)
        return context.get_dummy_value()

    return _of_rows(terms + 1, terms, lambda dtype: types.void, codegen)


def _of_rows(rows: int, numbers: int, result: Callable[[Any], Any], codegen: Callable[..., Any]) -> Callable[..., Any]:
    """The intrinsic with so many rows, then so many numbers, as its arguments."""

    @intrinsic
    def of_rows(typingctx: Any, *arguments: Any) -> Any:
        given, dtype = arguments[:rows], arguments[0].dtype
        if len(arguments) != rows + numbers or any(a.dtype != dtype or a.ndim != 1 or a.layout != "C" for a in given):
            raise TypeError(f"{rows} contiguous rows of one type and {numbers} numbers are wanted, not {arguments}")
        return result(dtype)(*given, *[dtype] * numbers), codegen

    return of_rows
