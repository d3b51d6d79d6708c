"""All-entity objectives on the CPU: see :mod:`murp.kernels.all_entities`.

One kernel does both passes. The first has queries as rows and entities as columns, the second entities as rows and
queries as columns. A thread takes a block of rows and walks over tiles of columns: it makes a tile of scores by
:func:`murp.kernels.numba_products.multiply`, turns it into weights in place, and multiplies it with the tile's vectors.
The tile stays in the core's own cache. A score is computed twice, which is cheaper than to keep it.

No sum is shared by two threads, and every operation is one that IEEE 754 defines to the bit. So the gradients have the
same bits on any number of threads, and on every processor but for the logarithm of a row's sum, which is PyTorch's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import Vectors, fma, take
from murp.kernels.numba_products import _PANEL_BYTES as VECTOR_BYTES
from murp.kernels.numba_products import multiply, multiply_half, pack

announce(__name__, "the scores of all entities")

_COLUMNS = 256  # of a tile: with a block of rows and its vectors it stays in a core's own cache
_BLOCK = 64  # rows, a multiple of those that meet a panel at once

# What a tile of scores is turned into: weights of a softmax whose sums are found on the way, weights of a softmax whose
# sums are known, sigmoids and the sums of softplus, sigmoids alone.
_SEEK, _KNOWN, _SOFTPLUS, _SIGMOID = range(4)


def reduced(
    softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    """The mean and, if asked for, its gradients by q, v, a and c; all tensors are contiguous.

    ``shares`` (B) make a weighted mean of a softmax's logarithms.
    """
    size, number = len(q), len(v)
    queries, entities = _Side(q, a), _Side(v, c)
    first = _Found(queries, gradients)
    first.fill(_SEEK if softmax else _SOFTPLUS, entities, size if softmax else size * number)
    if not softmax:
        value = first.total.sum() / (size * number)
        if not gradients:
            return (value,)
        second = _Found(entities, gradients)
        second.fill(_SIGMOID, queries, size * number)
        return value, first.gradient, second.gradient, first.weights, second.weights
    log = first.largest + first.total.log()
    own = log if a is None else log + a
    value = own.mean() if shares is None else own @ shares
    if not gradients:
        return (value,)
    if a is not None:  # a row's own number changes nothing of its weights, unless it is none
        log += a - a
        first.gradient += (a - a)[:, None]
        first.total += a - a
    queries.own = -log
    of_rows = first.total / first.total / size  # 1/B, or NaN
    if shares is not None:
        queries.own += shares.log()
        first.gradient *= (size * shares)[:, None]
        of_rows *= size * shares
    second = _Found(entities, gradients)
    second.fill(_KNOWN, queries, size if shares is None else 1)
    return value, first.gradient, second.gradient, of_rows, second.weights


class _Side:
    """Vectors (R, d) and a number for each, as rows and as columns."""

    def __init__(self, vectors: Tensor, own: Tensor | None) -> None:
        self.vectors = vectors
        self.own = vectors.new_zeros(len(vectors)) if own is None else own

    def columns(self) -> tuple[Any, Any, Any]:
        """Panels of whole tiles, the same numbers as tiles of vectors, and those of each column, -∞ beyond the last."""
        rows = self.vectors.numpy()
        lanes = VECTOR_BYTES // rows.itemsize
        count, dim = rows.shape
        width = min(_COLUMNS, -(-count // lanes) * lanes)
        number = -(-count // width)
        panels = np.zeros((number * width // lanes, dim, lanes), rows.dtype)
        threads.share(pack, rows, panels, work=rows.size)
        tiles = np.zeros((number, -(-dim // lanes), width, lanes), rows.dtype)
        threads.share(_tiled, rows, tiles, work=rows.size)
        beside = np.full((number, width), -np.inf, rows.dtype)
        beside.reshape(-1)[:count] = self.own.numpy()
        return panels, tiles, beside


class _Found:
    """What a pass finds of each row."""

    def __init__(self, side: _Side, gradients: bool) -> None:
        rows = len(side.vectors)
        self.side, self.gradients = side, gradients
        self.largest, self.total, self.weights = (side.vectors.new_empty(rows) for _ in range(3))
        self.gradient = torch.empty_like(side.vectors) if gradients else side.vectors.new_empty(0, 0)

    def fill(self, kind: int, columns: _Side, count: int) -> None:
        """The sums, and the gradients of what is divided by ``count``."""
        rows = self.side.vectors
        panels, tiles, beside = columns.columns()
        number, dtype = threads.count(), panels.dtype
        # Several blocks for each thread, so that none waits long for the last; their size changes no bit.
        block = max(8, min(_BLOCK, len(rows) // (4 * number) // 8 * 8))
        width, lanes = tiles.shape[2:]
        room = np.empty((number, block, width), dtype)
        sums = np.zeros((number, 2, block, tiles.shape[1] * lanes), dtype)
        scratch = np.zeros((number, 2, _BLOCK), dtype)
        work = rows.numel() * len(columns.vectors) * (2 if self.gradients else 1)
        threads.share(
            _passed, kind, self.gradients, dtype.type(count), rows.numpy(), self.side.own.numpy(), panels, tiles,
            beside, room, sums, scratch, self.largest.numpy(), self.total.numpy(), self.weights.numpy(),
            self.gradient.numpy(), work=work,
        )  # fmt: skip


@kernel
def _tiled(counters: Any, rows: Any, tiles: Any) -> None:
    """Rows (N, d) as tiles (N / T rounded up, d / W rounded up, T, W): lane l of a panel is a coordinate."""
    _, panels, width, lanes = tiles.shape
    count, dim = rows.shape
    while True:
        t = take(counters, 0, 1)
        if t >= len(tiles):
            return
        for p in range(panels):
            for k in range(min(width, count - t * width)):
                for lane in range(min(lanes, dim - p * lanes)):
                    tiles[t, p, k, lane] = rows[t * width + k, p * lanes + lane]


class _Mathematics(Vectors):
    """Writes elementary functions of vectors: plain operations, the same on every processor."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        super().__init__(context, builder, dtype, VECTOR_BYTES * 8 // dtype.bitwidth)
        single = dtype.bitwidth == 32
        self.integers = ir.VectorType(ir.IntType(dtype.bitwidth), self.lanes)
        self.mantissa, self.bias = (23, 127) if single else (52, 1023)
        # ln 2 in two parts; n times the first is exact. Beyond the limits 2ⁿ has no bits of its own.
        self.ln2 = (0.693359375, -2.12194440e-4) if single else (6.93147180369123816490e-01, 1.9082149292705877e-10)
        self.least, self.most = (-87.0, 88.0) if single else (-708.0, 709.0)
        self.of_exp, self.of_log = (7, 7) if single else (13, 17)

    def every(self, number: float) -> Any:
        return ir.Constant(self.type, [number] * self.lanes)

    def is_less(self, a: Any, b: Any) -> Any:
        return self.builder.fcmp_ordered("<", a, b)

    def larger(self, a: Any, b: Any) -> Any:
        """Of two numbers; the first where one is NaN."""
        return self.builder.select(self.is_less(a, b), b, a)

    def exp(self, x: Any) -> Any:
        """2ⁿ exp(r) with x = n log 2 + r and |r| ≤ log(2)/2; 0 below the least x, NaN of NaN."""
        build = self.builder
        bounded = self.larger(self.every(self.least), x)
        bounded = build.select(self.is_less(self.every(self.most), bounded), self.every(self.most), bounded)
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
        found = build.select(self.is_less(x, self.every(self.least)), self.zero(), found)
        return build.select(build.fcmp_unordered("uno", x, x), x, found)

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


def _over(results: int, step: Any, last: Any) -> Any:
    """An intrinsic of a row and its columns' numbers (T), T a multiple of a vector, and the row's own number.

    ``step`` is given the scores of a vector's width and what it returned before, -∞ or 0 at first; it returns new
    scores or None, and that. ``last`` makes a number of it.
    """

    @intrinsic
    def over(typingctx: Any, row: Any, columns: Any, own: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            mathematics = _Mathematics(context, builder, row.dtype)
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
                score = builder.fadd(mathematics.load(scores.data, at), mathematics.load(beside.data, at))
                score = builder.fadd(score, shift)
                changed, found = step(mathematics, score, [builder.load(place) for place in kept])
                if changed is not None:
                    mathematics.store(changed, scores.data, at)
                for place, value in zip(kept, found, strict=True):
                    builder.store(value, place)
            numbers = [last(mathematics, builder.load(place)) for place in kept]
            return context.make_tuple(builder, signature.return_type, numbers)

        return types.UniTuple(row.dtype, max(results, 1))(row, columns, own), codegen

    return over


def _largest_step(m: _Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    return None, [m.larger(kept[0], score)]


def _largest_lane(m: _Mathematics, value: Any) -> Any:
    found = m.builder.extract_element(value, ir.IntType(32)(0))
    for lane in range(1, m.lanes):
        other = m.builder.extract_element(value, ir.IntType(32)(lane))
        found = m.builder.select(m.builder.fcmp_ordered("<", found, other), other, found)
    return found


def _exp_step(m: _Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    weight = m.exp(score)
    return weight, [m.builder.fadd(kept[0], weight)]


def _sigmoid_step(m: _Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    weight, _ = m.sigmoid(score)
    return weight, [m.builder.fadd(kept[0], weight)]


def _softplus_step(m: _Mathematics, score: Any, kept: list[Any]) -> tuple[Any, list[Any]]:
    weight, decay = m.sigmoid(score)
    value = m.builder.fadd(m.larger(m.zero(), score), m.log_of_one_and(decay))
    return weight, [m.builder.fadd(kept[0], weight), m.builder.fadd(kept[1], value)]


# The largest score, NaN apart. The others make the scores into weights and return their sums; the last one returns that
# of softplus besides.
_largest_of = _over(0, _largest_step, _largest_lane)
_exponentials = _over(1, _exp_step, Vectors.sum)
_sigmoids = _over(1, _sigmoid_step, Vectors.sum)
_sigmoids_and_softplus = _over(2, _softplus_step, Vectors.sum)


@kernel
def _weigh(kind: int, scores: Any, beside: Any, own: Any, total: Any, weights: Any) -> None:
    """Make scores (R, T) into weights and add their sums to ``weights`` (R), those of softplus to ``total`` (R)."""
    for b in range(len(own)):
        if kind == _KNOWN:
            weights[b] += _exponentials(scores[b], beside, own[b])[0]
        elif kind == _SIGMOID:
            weights[b] += _sigmoids(scores[b], beside, own[b])[0]
        else:
            of_weights, of_values = _sigmoids_and_softplus(scores[b], beside, own[b])
            weights[b] += of_weights
            total[b] += of_values


@kernel
def _weigh_seeking(scores: Any, beside: Any, largest: Any, total: Any, kept: Any, zeros: Any) -> None:
    """Make scores (R, T) into exp(score - the largest so far) and add their sums to ``total`` (R).

    ``kept`` takes what all that was found before has to be multiplied by.
    """
    zero = scores.dtype.type(0)
    kept[:] = zero
    for b in range(len(largest)):
        before = largest[b]
        largest[b] = max(before, _largest_of(scores[b], beside, zero)[0])
        kept[b] = before - _finite(largest[b])
    _exponentials(kept, zeros, zero)
    for b in range(len(largest)):
        total[b] = fma(total[b], kept[b], _exponentials(scores[b], beside, -_finite(largest[b]))[0])


@kernel
def _finite(largest: Any) -> Any:
    """0 in place of -∞, the largest score of a row without candidates."""
    return largest if largest > -np.inf else type(largest)(0)


@kernel
def _passed(
    counters: Any, kind: int, gradients: bool, count: Any, x: Any, own: Any, panels: Any, tiles: Any, beside: Any,
    room: Any, sums: Any, scratch: Any, largest: Any, total: Any, weights: Any, gradient: Any,
) -> None:  # fmt: skip
    """Take blocks of rows until none is left; counters[0] is the next row, counters[1] the next thread's room."""
    thread = take(counters, 1, 1)
    scores, kept, zeros, block = room[thread], scratch[thread, 0], scratch[thread, 1], room.shape[1]
    result, part = sums[thread, 0], sums[thread, 1]
    abreast = len(panels) // len(tiles)
    lanes = tiles.shape[3]
    left = x.shape[1] % lanes  # coordinates of the last panel
    whole = tiles.shape[1] - (0 < left <= lanes // 2)
    zero = x.dtype.type(0)
    kept[:] = x.dtype.type(1)
    while True:
        start = take(counters, 0, block)
        if start >= len(x):
            return
        stop = min(start + block, len(x))
        number = stop - start
        largest[start:stop] = -np.inf
        total[start:stop] = zero
        weights[start:stop] = zero
        result[:] = zero
        for t in range(len(tiles)):
            multiply(x, start, stop, panels, t * abreast, (t + 1) * abreast, scores)
            if kind == _SEEK:
                _weigh_seeking(scores, beside[t], largest[start:stop], total[start:stop], kept, zeros)
            else:
                _weigh(kind, scores, beside[t], own[start:stop], total[start:stop], weights[start:stop])
            if gradients:
                multiply(scores, 0, number, tiles[t], 0, whole, part)
                if whole < tiles.shape[1]:
                    multiply_half(scores, 0, number, tiles[t], whole, part[:, whole * lanes :])
                for b in range(number):
                    for j in range(result.shape[1]):
                        result[b, j] = fma(result[b, j], kept[b], part[b, j])
        for b in range(number):
            divisor = total[start + b] * count if kind == _SEEK else count
            weights[start + b] /= count
            for j in range(gradient.shape[1]):
                gradient[start + b, j] = result[b, j] / divisor
