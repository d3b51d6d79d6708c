"""Operations that Numba does not offer, each one machine instruction or a few.

``fma(a, b, c)`` is ab + c with one rounding, by IEEE 754 the same number on every processor: an instruction on all
made since 2013, a slow library call on older ones.

Rows are read eight lanes at a time, and what is left beyond the last whole eight one by one. Lane l of a sum over a row
adds the terms j = l, l + 8, l + 16, … by ``fma``; the lanes are then added in pairs, ((0+4)+(2+6)) + ((1+5)+(3+7)), and
the terms that are left, added one by one, come last. So the bits of a sum depend on the numbers alone, not on how wide
a processor's vectors are. A row of 40 numbers is five vectors; a compiler that does not know the length of a loop
prepares it for 64 at a time where vectors are wide, and does those 40 one by one.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LANES = 8
_I64, _I32 = ir.IntType(64), ir.IntType(32)
_IS_X86 = platform.machine() in ("x86_64", "AMD64")


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
    """Tell the processor that a loop waits, where it can be told."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _IS_X86:
            kind = ir.FunctionType(ir.VoidType(), ())
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), ())
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typingctx: Any, table: Any, row: Any) -> Any:
    """Begin to load a row of a contiguous table (N, …) into the cache; nothing waits for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(table)(context, builder, arguments[0])
        step = cgutils.unpack_tuple(builder, array.strides, table.ndim)[0]
        first = builder.add(builder.ptrtoint(array.data, _I64), builder.mul(step, arguments[1]))
        pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), (pointer, _I32, _I32, _I32))
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        with cgutils.for_range_slice(builder, _I64(0), step, _I64(64), _I64) as (at, _):
            builder.call(ask, (builder.inttoptr(builder.add(first, at), pointer), _I32(0), _I32(3), _I32(1)))
        return context.get_dummy_value()

    return types.void(table, types.int64), codegen


sleep_microseconds = types.ExternalFunction("usleep", types.int32(types.uint32))


def _cell(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    counters = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(counters.data, [arguments[1]])


class Vectors:
    """Writes vector instructions for numbers of one type."""

    def __init__(self, context: Any, builder: Any, dtype: Any, lanes: int = LANES) -> None:
        self.builder = builder
        self.real = context.get_data_type(dtype)
        self.bytes = dtype.bitwidth // 8
        self.lanes = lanes
        self.type = ir.VectorType(self.real, lanes)
        self._fma, self._sqrt = (
            cgutils.get_or_insert_function(
                builder.module,
                ir.FunctionType(self.type, (self.type,) * number),
                f"llvm.{name}.v{lanes}f{dtype.bitwidth}",
            )
            for name, number in (("fma", 3), ("sqrt", 1))
        )

    def zero(self) -> Any:
        return ir.Constant(self.type, [0.0] * self.lanes)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.call(self._fma, (a, b, c))

    def sqrt(self, a: Any) -> Any:
        return self.builder.call(self._sqrt, (a,))

    def load(self, row: Any, offset: Any) -> Any:
        return self.builder.load(self._at(row, offset), align=self.bytes)

    def store(self, value: Any, row: Any, offset: Any) -> None:
        self.builder.store(value, self._at(row, offset), align=self.bytes)

    def _at(self, row: Any, offset: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(row, [offset]), self.type.as_pointer())

    def in_order(self, value: Any) -> Any:
        """The value itself, which the compiler must have in a register here, before it reads any later number.

        For processors with AVX-512. It is an empty piece of assembly, no instruction. A compiler reads the numbers of
        many products first, for processors that would wait for each. Then registers run out, and sums are moved to and
        fro: a third of all instructions of a loop over eight points were such moves.
        """
        kind = ir.FunctionType(self.type, [self.type])
        return self.builder.asm(kind, "", "=v,0,~{memory}", (value,), side_effect=True)

    def spread(self, number: Any) -> Any:
        """The number in every lane."""
        nothing = ir.Constant(self.type, ir.Undefined)
        first = self.builder.insert_element(nothing, number, _I32(0))
        everywhere = ir.Constant(ir.VectorType(_I32, self.lanes), [0] * self.lanes)
        return self.builder.shuffle_vector(first, nothing, everywhere)

    def sum(self, value: Any) -> Any:
        """Of the lanes, in pairs."""
        width = self.lanes
        while width > 1:
            width //= 2
            halves = [
                ir.Constant(ir.VectorType(_I32, width), list(range(start, start + width))) for start in (0, width)
            ]
            low, high = (self.builder.shuffle_vector(value, value, half) for half in halves)
            value = self.builder.fadd(low, high)
        return self.builder.extract_element(value, _I32(0))


class Numbers:
    """The same for what is left of a row beyond the last whole vector, one number at a time."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.builder = builder
        self.type = context.get_data_type(dtype)
        kind = ir.FunctionType(self.type, (self.type,))
        self._sqrt = cgutils.get_or_insert_function(builder.module, kind, f"llvm.sqrt.f{dtype.bitwidth}")

    def zero(self) -> Any:
        return self.type(0.0)

    def fma(self, a: Any, b: Any, c: Any) -> Any:
        return self.builder.fma(a, b, c)

    def sqrt(self, a: Any) -> Any:
        return self.builder.call(self._sqrt, (a,))

    def load(self, row: Any, offset: Any) -> Any:
        return self.builder.load(self.builder.gep(row, [offset]))

    def store(self, value: Any, row: Any, offset: Any) -> None:
        self.builder.store(value, self.builder.gep(row, [offset]))

    def spread(self, number: Any) -> Any:
        return number

    def sum(self, value: Any) -> Any:
        return value


Term = Callable[[Any, list[Any]], tuple[Any, Any]]


def product(a: int, b: int) -> Term:
    """The term x_a x_b of :func:`sums`."""
    return lambda builder, elements: (elements[a], elements[b])


def squared_difference(a: int, b: int) -> Term:
    """The term (x_a - x_b)² of :func:`sums`."""

    def term(builder: Any, elements: list[Any]) -> tuple[Any, Any]:
        difference = builder.fsub(elements[a], elements[b])
        return difference, difference

    return term


def sums(*terms: Term) -> Any:
    """A function of a tuple of rows of one length; its result is a tuple with the sum of each term over the rows."""

    @intrinsic
    def of_rows(typingctx: Any, rows: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            totals: list[Any] = []
            for part, first, last, step, data in _parts(context, builder, rows, arguments[0]):
                places = [cgutils.alloca_once(builder, part.type) for _ in terms]
                for place in places:
                    builder.store(part.zero(), place)
                with cgutils.for_range_slice(builder, first, last, step, _I64) as (at, _):
                    elements = [part.load(row, at) for row in data]
                    for term, place in zip(terms, places, strict=True):
                        builder.store(part.fma(*term(builder, elements), builder.load(place)), place)
                found = [part.sum(builder.load(place)) for place in places]
                totals = [builder.fadd(a, b) for a, b in zip(totals, found, strict=True)] if totals else found
            return context.make_tuple(builder, signature.return_type, totals)

        return types.UniTuple(_dtype(rows), len(terms))(rows), codegen

    return of_rows


@intrinsic
def combine(typingctx: Any, rows: Any, factors: Any) -> Any:
    """``combine((y, x₁, …), (b, a₁, …))`` makes the row y into by + a₁x₁ + …, added in this order."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = cgutils.unpack_tuple(builder, arguments[1])
        for part, first, last, step, data in _parts(context, builder, rows, arguments[0]):
            spread = [part.spread(number) for number in numbers]
            with cgutils.for_range_slice(builder, first, last, step, _I64) as (at, _):
                value = builder.fmul(spread[0], part.load(data[0], at))
                for factor, row in zip(spread[1:], data[1:], strict=True):
                    value = part.fma(factor, part.load(row, at), value)
                part.store(value, data[0], at)
        return context.get_dummy_value()

    return types.void(rows, types.UniTuple(_dtype(rows), len(rows))), codegen


@intrinsic
def fill(typingctx: Any, row: Any, value: Any) -> Any:
    """Set every number of a contiguous row."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = context.make_tuple(builder, types.UniTuple(row, 1), [arguments[0]])
        for part, first, last, step, data in _parts(context, builder, (row,), rows):
            spread = part.spread(arguments[1])
            with cgutils.for_range_slice(builder, first, last, step, _I64) as (at, _):
                part.store(spread, data[0], at)
        return context.get_dummy_value()

    return types.void(row, _dtype((row,))), codegen


Formula = Callable[[Any, list[Any], list[Any]], list[Any]]


def elementwise(formula: Formula) -> Any:
    """A function of a tuple of rows and a tuple of numbers that replaces the elements of the first rows.

    ``formula(part, elements, numbers)`` has :class:`Vectors` or :class:`Numbers` to compute with, an element of each
    row and the numbers; it gives the new elements of as many of the first rows as it changes.
    """

    @intrinsic
    def of_rows(typingctx: Any, rows: Any, numbers: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            given = cgutils.unpack_tuple(builder, arguments[1])
            for part, first, last, step, data in _parts(context, builder, rows, arguments[0]):
                spread = [part.spread(number) for number in given]
                with cgutils.for_range_slice(builder, first, last, step, _I64) as (at, _):
                    changed = formula(part, [part.load(row, at) for row in data], spread)
                    for row, value in zip(data, changed, strict=False):
                        part.store(value, row, at)
            return context.get_dummy_value()

        return types.void(rows, types.UniTuple(_dtype(rows), len(numbers))), codegen

    return of_rows


@intrinsic
def add_difference(typingctx: Any, rows: Any, factor: Any) -> Any:
    """``add_difference((y, x, v), a)`` adds a(x - v) to the row y."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        for part, first, last, step, data in _parts(context, builder, rows, arguments[0]):
            spread = part.spread(arguments[1])
            with cgutils.for_range_slice(builder, first, last, step, _I64) as (at, _):
                y, x, v = (part.load(row, at) for row in data)
                part.store(part.fma(spread, builder.fsub(x, v), y), data[0], at)
        return context.get_dummy_value()

    return types.void(rows, _dtype(rows)), codegen


def _dtype(rows: Any) -> Any:
    """The type of the numbers of all rows, which have to be contiguous."""
    if len({(row.dtype, row.ndim, row.layout) for row in rows}) > 1 or rows[0].ndim != 1 or rows[0].layout != "C":
        raise TypeError(f"contiguous rows of one type are wanted, not {rows}")
    return rows[0].dtype


def _parts(context: Any, builder: Any, kinds: Any, rows: Any) -> Iterator[tuple[Any, ...]]:
    """How to write a loop over rows: first its whole vectors, then what is left; from, to, step, and the rows' data."""
    given = cgutils.unpack_tuple(builder, rows)
    arrays = [context.make_array(kind)(context, builder, row) for kind, row in zip(kinds, given, strict=True)]
    (length,) = cgutils.unpack_tuple(builder, arrays[0].shape, 1)
    whole = builder.and_(length, _I64(-LANES))
    data = [array.data for array in arrays]
    yield Vectors(context, builder, kinds[0].dtype), _I64(0), whole, _I64(LANES), data
    yield Numbers(context, builder, kinds[0].dtype), whole, length, _I64(1), data
