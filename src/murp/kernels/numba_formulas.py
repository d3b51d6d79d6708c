"""Loops that compute a :class:`murp.kernels.formulas.Formula` and its derivatives for cells of queries and candidates.

A cell's inputs are P products (B, T), the Q numbers of its query (B), and the C numbers of its candidate, which are
those of all queries (1, T) or each query's own (B, T). All operations of a formula are done for a vector of cells while
they are in registers. They are those of IEEE 754, written out, so that the bits are the same on every processor.
"""

from __future__ import annotations

import hashlib
import math
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
from murp.kernels.intrinsics import take
from murp.kernels.numba_weights import Mathematics, exponentials, largest_of, softplus_step

announce(__name__, "the scores of this model")

_I64 = ir.IntType(64)
SOME = 8  # queries that a thread takes at a time

# What multiplies the derivatives of a cell: a number for it; its weight in a softmax; its sigmoid.
GIVEN, SOFTMAX, SIGMOID = range(3)


class Loops(NamedTuple):
    """The compiled loops of a formula; each takes queries from a counter, some at a time."""

    values: Any
    log_sums: Any
    derivatives: tuple[Any, Any, Any]  # by kind of weight


@cache
def loops(formula: Formula, counts: tuple[int, int, int]) -> Loops:
    """The loops for a formula of so many products, numbers of queries and of candidates.

    They are compiled when they are first called, or read from the cache.
    """
    digest = hashlib.blake2b(repr((formula, counts)).encode(), digest_size=12).hexdigest()
    row_values = _values(formula, counts)

    def values(counters: Any, products: Any, queries: Any, candidates: Any, out: Any) -> None:
        """y of all cells into ``out`` (B, T)."""
        while True:
            start = take(counters, 0, SOME)
            if start >= len(out):
                return
            for b in range(start, min(start + SOME, len(out))):
                row_values(products, queries, candidates, b, out)

    def log_sums(
        counters: Any, products: Any, queries: Any, candidates: Any, width: int, zeros: Any, out: Any, logs: Any
    ) -> None:
        """log Σ exp y of the first ``width`` cells of each query into ``logs`` (B); ``out`` is scratch."""
        while True:
            start = take(counters, 0, SOME)
            if start >= len(out):
                return
            for b in range(start, min(start + SOME, len(out))):
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
        counters: Any, products: Any, queries: Any, candidates: Any, width: int, own: Any, shares: Any, of: Any,
        by_products: Any, by_queries: Any, by_candidates: Any, found: Any,
    ) -> None:  # fmt: skip
        """The derivatives times the weights of the first ``width`` cells of each query.

        Those by products go to ``by_products``, which may be the products; those by a query's numbers to ``by_queries``
        (Q, B); those by candidates' are added to ``by_candidates`` (C, 1 or B, T). A cell's weight is ``of`` (B, T); or
        ``shares`` (B) times exp(y - own) with ``own`` (B); or ``shares`` times σ(y), and then ``found`` (B) takes
        Σ softplus(y). If candidates' numbers are shared, one thread takes all queries.
        """
        while True:
            start = take(counters, 0, SOME)
            if start >= products.shape[1]:
                return
            for b in range(start, min(start + SOME, products.shape[1])):
                found[b] = row(
                    products, queries, candidates, b, width, own, shares, of, by_products, by_queries, by_candidates
                )

    return kernel(derivatives, key=key)


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
        twice = build.fmul(self.every(2.0), power)
        found = self.fma(twice, less, build.fsub(twice, self.every(1.0)))
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
        """sin r and cos r with x = n π/2 + r and |r| ≤ π/4, and n's last bits; r is NaN of x beyond 2¹⁶."""
        build = self.builder
        magic = self.every(1.5 * 2.0**self.mantissa)
        rounded = self.fma(x, self.every(2 / math.pi), magic)
        n = build.fsub(rounded, magic)
        r = x
        for part in self.half_pi:
            r = self.fma(n, self.every(-part), r)
        r = self.select(self.compare("<", self.absolute(x), self.every(2.0**16)), r, self.every(math.nan))
        square = build.fmul(r, r)
        terms = 6 if self.bytes == 4 else 11
        of_sin, of_cos = self.zero(), self.zero()
        for k in range(terms - 1, -1, -1):
            of_sin = self.fma(of_sin, square, self.every((-1) ** k / math.factorial(2 * k + 1)))
            of_cos = self.fma(of_cos, square, self.every((-1) ** k / math.factorial(2 * k)))
        return build.fmul(r, of_sin), of_cos, build.bitcast(rounded, self.integers)

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

    A product that is added to something is a fused multiplication and addition. What is divided by one number several
    times is multiplied by its inverse.
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
            if second and int(b) in factors:
                x, y = factors[int(b)]
                found = m.fma(m.negative(x) if name == "sub" else x, y, value(operands[0]))
            elif first and int(a) in factors:
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
        """The place of row b, or of the only one, in part j of an array (J, B or 1, T)."""
        build, (_, rows, length) = self.builder, self.shapes[array]
        at = build.select(build.icmp_signed("==", rows, _I64(1)), _I64(0), b)
        return build.gep(self.arrays[array].data, [build.mul(build.add(build.mul(_I64(j), rows), at), length)])

    def number(self, array: int, j: int, b: Any) -> Any:
        """The place of number b in row j of an array (J, B)."""
        build = self.builder
        return build.gep(self.arrays[array].data, [build.add(build.mul(_I64(j), self.shapes[array][1]), b)])

    def given(self, counts: tuple[int, int, int], b: Any) -> Callable[[Any], list[Any]]:
        """A function that reads all inputs of the vector of cells at a place of row b."""
        products, queries, candidates = counts
        rows = [self.row(0, j, b) for j in range(products)] + [self.row(2, j, b) for j in range(candidates)]
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
        of: Any, by_products: Any, by_queries: Any, by_candidates: Any,
    ) -> Any:  # fmt: skip
        real = products.dtype

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            cells = _Cells(context, builder, signature, arguments)
            m, b, width = cells.m, arguments[3], arguments[4]
            read = cells.given(counts, b)
            length = cells.shapes[0][2]
            targets = [cells.row(8, j, b) for j in range(products_)]
            sums = [cells.row(10, j, b) for j in range(candidates_)]
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
                builder.store(m.sum(builder.load(place)), cells.number(9, j, b))
            return m.sum(builder.load(totals[-1]))

        given = (products, queries, candidates, types.int64, types.int64, own, shares, of)
        return real(*given, by_products, by_queries, by_candidates), codegen

    return row


def _spread_integer(builder: Any, number: Any, lanes: int) -> Any:
    nothing = ir.Constant(ir.VectorType(_I64, lanes), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.IntType(32)(0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, nothing, everywhere)
