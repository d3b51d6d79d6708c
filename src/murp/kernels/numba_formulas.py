"""Loops that compute a :class:`murp.kernels.formulas.Formula` and its derivatives for cells of queries and candidates.

A cell's inputs are P products (P, B, T), the Q numbers of its query (Q, B), and the C numbers of its candidate (C, T),
which all queries share. All operations of a formula are done for a vector of cells while they are in registers. They
are those of IEEE 754, written out, so that the bits are the same on every processor. T is a multiple of a vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from murp.compiling import announce, kernel
from murp.kernels.formulas import Formula
from murp.kernels.numba_functions import Elementary, Mathematics
from murp.kernels.numba_weights import exponentials, largest_of, softplus_step

announce(__name__, "the scores of this model")

_I64 = ir.IntType(64)

# What multiplies the derivatives of a cell: a number for it; its weight in a softmax; its sigmoid.
GIVEN, SOFTMAX, SIGMOID = range(3)


class Loops(NamedTuple):
    """The compiled loops of a formula."""

    values: Any
    log_sums: Any
    derivatives: tuple[Any, Any, Any]  # by kind of weight


@cache
def loops(formula: Formula, counts: tuple[int, int, int]) -> Loops:
    """The loops for a formula of so many products, numbers of queries and of candidates.

    They are compiled when they are first called, or read from the cache.
    """
    digest = "-".join(map(str, (formula.digest, *counts)))
    row_values = _values(formula, counts)

    def values(products: Any, queries: Any, candidates: Any, out: Any) -> None:
        """y of all cells into ``out`` (B, T)."""
        for b in range(len(out)):
            row_values(products, queries, candidates, b, out)

    def log_sums(
        products: Any, queries: Any, candidates: Any, width: int, zeros: Any, out: Any, logs: Any
    ) -> None:  # fmt: skip
        """log Σ exp y of the first ``width`` cells of each query into ``logs`` (B); ``out`` (B, T) is scratch."""
        for b in range(len(out)):
            row_values(products, queries, candidates, b, out)
            row = out[b]
            row[width:] = row.dtype.type(-np.inf)
            (largest,) = largest_of(row, zeros, row.dtype.type(0))
            shift = largest if np.isfinite(largest) else row.dtype.type(0)
            (total,) = exponentials(row, zeros, -shift)
            logs[b] = shift + np.log(total)

    return Loops(
        kernel(values, key=digest),
        kernel(log_sums, key=digest),
        tuple(_derivatives_loop(formula, counts, kind, f"{kind}-{digest}") for kind in (GIVEN, SOFTMAX, SIGMOID)),
    )


def _derivatives_loop(formula: Formula, counts: tuple[int, int, int], kind: int, key: str) -> Any:
    row = _derivatives(formula, counts, kind)

    def derivatives(
        products: Any, queries: Any, candidates: Any, width: int, own: Any, shares: Any, of: Any, by_queries: Any,
        by_candidates: Any, found: Any,
    ) -> None:  # fmt: skip
        """The derivatives times the weights of the first ``width`` cells of each query.

        Those by products take the products' places; those by a query's numbers go to ``by_queries`` (Q, B); those by
        candidates' numbers are added to ``by_candidates`` (C, T). A cell's weight is ``of`` (B, T); or ``shares`` (B)
        times exp(y - own) with ``own`` (B); or ``shares`` times σ(y), and then ``found`` (B) takes Σ softplus(y).
        """
        for b in range(products.shape[1]):
            found[b] = row(products, queries, candidates, b, width, own, shares, of, by_queries, by_candidates)

    return kernel(derivatives, key=key)


def _compared(sign: str) -> Callable[..., Any]:
    return lambda m, a, b: m.compare(sign, a, b)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": Elementary.negative,
    "abs": Elementary.absolute,
    "sqrt": Elementary.sqrt,
    "rsqrt": lambda m, x: m.divide(m.every(1.0), m.sqrt(x)),
    "reciprocal": lambda m, x: m.divide(m.every(1.0), x),
    "square": lambda m, x: m.builder.fmul(x, x),
    "sigmoid": lambda m, x: Mathematics.sigmoid(m, x)[0],
    "relu": lambda m, x: m.at_least(x, m.zero()),
    "add": lambda m, a, b: m.builder.fadd(a, b),
    "sub": lambda m, a, b: m.builder.fsub(a, b),
    "mul": lambda m, a, b: m.builder.fmul(a, b),
    "div": Elementary.divide,
    "maximum": lambda m, a, b: m.select(m.compare("!=", b, b), b, m.at_least(a, b)),
    "minimum": lambda m, a, b: m.select(m.compare("!=", b, b), b, m.at_most(a, b)),
    "at_least": Elementary.at_least,
    "at_most": Elementary.at_most,
    "where": Elementary.select,
    "logical_and": lambda m, a, b: m.builder.and_(a, b),
    "logical_or": lambda m, a, b: m.builder.or_(a, b),
    "logical_not": lambda m, a: m.builder.not_(a),
    **{name: _compared(sign) for name, sign in
       (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<"), ("eq", "=="), ("ne", "!="))},
    **{name: getattr(Elementary, name) for name in
       ("exp", "expm1", "log", "log1p", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "sin", "cos", "asin", "acos",
        "sign")},
}  # fmt: skip


def _written(m: Elementary, formula: Formula, given: list[Any]) -> list[Any]:
    """Write all steps of a formula; the outputs, None where there is none.

    A product that is added to something else than a product is a fused multiplication and addition. What is divided by
    one number several times is multiplied by its inverse, which is infinite if the number is denormal.
    """
    values = list(given)
    build = m.builder
    factors: dict[int, tuple[Any, Any]] = {}  # of values that are products
    inverses: dict[int, Any] = {}
    divisors = Counter(operands[1] for name, operands in formula.steps if name == "div")

    def value(operand: tuple[bool, float]) -> Any:
        of_value, number = operand
        return values[int(number)] if of_value else m.every(number)

    for name, operands in formula.steps:
        found = None
        if name == "div" and divisors[operands[1]] > 1 and operands[1][0]:
            place = int(operands[1][1])
            if place not in inverses:
                inverses[place] = m.divide(m.every(1.0), values[place])
            found = build.fmul(value(operands[0]), inverses[place])
        elif name in ("add", "sub"):
            (first, a), (second, b) = operands
            first, second = (of_value and int(i) in factors for of_value, i in operands)
            if first and second:  # fused, the difference of equal products would be one of their roundings
                pass
            elif second:
                x, y = factors[int(b)]
                found = m.fma(m.negative(x) if name == "sub" else x, y, value(operands[0]))
            elif first:
                x, y = factors[int(a)]
                other = value(operands[1])
                found = m.fma(x, y, m.negative(other) if name == "sub" else other)
        elif name == "mul":
            factors[len(values)] = value(operands[0]), value(operands[1])
        values.append(_OPERATIONS[name](m, *map(value, operands)) if found is None else found)
    return [None if of is None else value(of) for of in formula.outputs]


class _Cells:
    """The arrays of a loop over the cells of row b: where its vectors are read and written."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.arrays: dict[int, Any] = {
            i: context.make_array(kind)(context, builder, given)
            for i, (kind, given) in enumerate(zip(signature.args, arguments, strict=True))
            if isinstance(kind, types.Array)
        }
        self.shapes = {i: cgutils.unpack_tuple(builder, array.shape) for i, array in self.arrays.items()}
        self.m = Elementary(context, builder, signature.args[0].dtype)

    def row(self, array: int, j: int, b: Any) -> Any:
        """The place of row b of part j in an array (J, B, T)."""
        build, (_, rows, length) = self.builder, self.shapes[array]
        return build.gep(self.arrays[array].data, [build.mul(build.add(build.mul(_I64(j), rows), b), length)])

    def number(self, array: int, j: int, b: Any) -> Any:
        """The place of number b in row j of an array (J, …)."""
        build = self.builder
        return build.gep(self.arrays[array].data, [build.add(build.mul(_I64(j), self.shapes[array][1]), b)])

    def given(self, counts: tuple[int, int, int], b: Any) -> Callable[[Any], list[Any]]:
        """A function that reads all inputs of the vector of cells at a place of row b."""
        products, queries, candidates = counts
        rows = [self.row(0, j, b) for j in range(products)] + [self.number(2, j, _I64(0)) for j in range(candidates)]
        own = [self.m.spread(self.builder.load(self.number(1, j, b))) for j in range(queries)]

        def read(at: Any) -> list[Any]:
            found = [self.m.load(row, at) for row in rows]
            return [*found[:products], *own, *found[products:]]

        return read


def _values(formula: Formula, counts: tuple[int, int, int]) -> Any:
    """An intrinsic that computes y of the cells of row b: inputs, b, and where it is written."""

    @intrinsic
    def row(typingctx: Any, products: Any, queries: Any, candidates: Any, b: Any, out: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            cells = _Cells(context, builder, signature, arguments)
            m, b = cells.m, arguments[3]
            read = cells.given(counts, b)
            length = cells.shapes[4][1]
            into = builder.gep(cells.arrays[4].data, [builder.mul(b, length)])
            with cgutils.for_range_slice(builder, _I64(0), length, _I64(m.lanes), _I64) as (at, _):
                m.store(_written(m, formula, read(at))[0], into, at)
            return context.get_dummy_value()

        return types.void(products, queries, candidates, types.int64, out), codegen

    return row


def _derivatives(formula: Formula, counts: tuple[int, int, int], kind: int) -> Any:
    """An intrinsic for the derivatives of the cells of row b, which returns the sum of softplus(y)."""
    products_, queries_, candidates_ = counts

    @intrinsic
    def row(
        typingctx: Any, products: Any, queries: Any, candidates: Any, b: Any, width: Any, own: Any, shares: Any,
        of: Any, by_queries: Any, by_candidates: Any,
    ) -> Any:  # fmt: skip
        real = products.dtype

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            cells = _Cells(context, builder, signature, arguments)
            m, b, width = cells.m, arguments[3], arguments[4]
            read = cells.given(counts, b)
            length = cells.shapes[0][2]
            targets = [cells.row(0, j, b) for j in range(products_)]
            sums = [cells.number(9, j, _I64(0)) for j in range(candidates_)]
            weights = builder.gep(cells.arrays[7].data, [builder.mul(b, length)])
            shift, share = (m.spread(builder.load(builder.gep(cells.arrays[i].data, [b]))) for i in (5, 6))
            totals = [cgutils.alloca_once_value(builder, m.zero()) for _ in range(queries_ + 1)]
            lanes = ir.Constant(ir.VectorType(_I64, m.lanes), list(range(m.lanes)))
            ends = _spread_integer(builder, width, m.lanes)
            with cgutils.for_range_slice(builder, _I64(0), length, _I64(m.lanes), _I64) as (at, _):
                given = read(at)
                y, *slopes = _written(m, formula, given)
                further = m.zero()
                if kind == GIVEN:
                    weight = m.load(weights, at)
                elif kind == SOFTMAX:
                    weight = builder.fmul(m.exp(builder.fsub(y, shift)), share)
                else:
                    sigmoid, (_, further) = softplus_step(m, y, [m.zero(), m.zero()])
                    weight = builder.fmul(sigmoid, share)
                here = builder.icmp_signed("<", builder.add(_spread_integer(builder, at, m.lanes), lanes), ends)

                def inside(value: Any, here: Any = here) -> Any:
                    return builder.select(here, value, m.zero())

                found = [m.zero() if slope is None else builder.fmul(weight, slope) for slope in slopes]
                for place, value in zip(targets, found[:products_], strict=True):
                    m.store(value, place, at)
                for place, value in zip(totals, [*found[products_ : products_ + queries_], further], strict=True):
                    builder.store(builder.fadd(builder.load(place), inside(value)), place)
                for place, value in zip(sums, found[products_ + queries_ :], strict=True):
                    m.store(builder.fadd(m.load(place, at), value), place, at)
            for j, place in enumerate(totals[:-1]):
                builder.store(m.sum(builder.load(place)), cells.number(8, j, b))
            return m.sum(builder.load(totals[-1]))

        given = (products, queries, candidates, types.int64, types.int64, own, shares, of)
        return real(*given, by_queries, by_candidates), codegen

    return row


def _spread_integer(builder: Any, number: Any, lanes: int) -> Any:
    nothing = ir.Constant(ir.VectorType(_I64, lanes), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, nothing, everywhere)
