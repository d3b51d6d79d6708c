"""Inner products on the CPU: see :mod:`murp.kernels.products`.

Rows are turned into panels of one vector's width, lane l for row l. A block of points meets panels in registers, one
``fma`` a coordinate. Threads take tiles of panels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from murp import threads
from murp.compiling import for_this_processor, kernel
from murp.kernels.intrinsics import Vectors, fma, take

PANEL_BYTES = 64
_PANELS = 16  # a tile: with the points' rows it stays in a core's own cache
_I64 = ir.IntType(64)


def _wide() -> bool:
    """Whether the processor has 32 registers of 64 bytes, or half as many of half the size or less."""
    return for_this_processor() and bool(binding.get_host_cpu_features().get("avx512f"))


_WIDE = _wide()
# A block of points meets some panels in registers: 8 points and 2 panels take 16 of 32 registers, 6 points and a panel
# 12 of 16. With one panel only, every product reads a number from the cache, which two units for products wait for.
POINTS, PAIR = (8, 2) if _WIDE else (6, 1)
_ABREAST = 4  # panels that a single point meets at a time


def inner_products(points: Tensor, rows: Tensor, out: Tensor, panels: Any = None) -> None:
    """See :func:`murp.kernels.products.inner_products`; ``out`` has the shape (B, N), ``panels`` are rows packed."""
    panels = packed(rows) if panels is None else panels
    tiles = -(-len(panels) // _PANELS)
    found = np.empty((tiles, POINTS, _PANELS * panels.shape[2]), panels.dtype)
    work = points.shape[0] * rows.shape[0] * rows.shape[1]
    threads.share(_tiles, points.contiguous().numpy(), panels, found, out.numpy(), work=work)


def packed(rows: Tensor) -> Any:
    """Rows (N, d) as panels (N / W rounded up, d, W), which :func:`multiply` takes: lane l of a panel is a row."""
    array = rows.contiguous().numpy()
    width = PANEL_BYTES // array.itemsize
    panels = np.zeros((-(-len(array) // width), array.shape[1], width), array.dtype)
    threads.share(pack, array, panels, work=array.size)
    return panels


def squared_norms(rows: Tensor, out: Tensor) -> None:
    """See :func:`murp.kernels.products.squared_norms`."""
    _squared_norms(rows.contiguous().numpy(), out.numpy())


class Registers:
    """Writes the products of so many points with vectors of d numbers side by side, whose sums stay in registers.

    These are panels (panels, d, W), or rows (d, m) of which W numbers are one. Points are the rows of their array
    (points, d), or its columns (d, points) if they are ``turned``.
    """

    def __init__(self, points: int, panels: int, turned: bool = False) -> None:
        self.points, self.panels, self.turned = points, panels, turned

    def sums(self, context: Any, builder: Any, types_of: Any, arguments: Any) -> list[list[Any]]:
        """Where the sum of each point and panel is kept; the first two arguments are the points and the vectors."""
        x, panel = types_of[:2]
        width = PANEL_BYTES // (x.dtype.bitwidth // 8)
        kind = Vectors(context, builder, x.dtype, width)
        pointed, vectors = (
            context.make_array(of)(context, builder, a) for of, a in zip((x, panel), arguments[:2], strict=True)
        )
        dim = cgutils.unpack_tuple(builder, vectors.shape, panel.ndim)[panel.ndim - 2]
        rows = stride(builder, pointed, x, 0)
        along, apart = (rows, _I64(1)) if self.turned else (_I64(1), rows)
        of_panels = stride(builder, vectors, panel, 0) if panel.ndim == 3 else _I64(width)
        down = stride(builder, vectors, panel, panel.ndim - 2)
        totals = [
            [cgutils.alloca_once_value(builder, kind.zero()) for _ in range(self.panels)] for _ in range(self.points)
        ]

        def add(at: Any) -> None:
            """The products of one coordinate."""
            here, there = builder.mul(at, down), builder.mul(at, along)
            loaded = [
                kind.load(vectors.data, builder.add(builder.mul(_I64(p), of_panels), here)) for p in range(self.panels)
            ]
            for b in range(self.points):
                place = builder.gep(pointed.data, [builder.add(there, builder.mul(_I64(b), apart))])
                coordinate = kind.spread(builder.load(place))
                for total, vector in zip(totals[b], loaded, strict=True):
                    value = kind.fma(coordinate, vector, builder.load(total))
                    builder.store(kind.in_order(value) if _WIDE else value, total)

        whole = builder.and_(dim, _I64(-2))
        with cgutils.for_range_slice(builder, _I64(0), whole, _I64(2), _I64) as (at, _):
            add(at)
            add(builder.add(at, _I64(1)))
        with builder.if_then(builder.icmp_signed("<", whole, dim)):
            add(whole)
        return totals


def stride(builder: Any, array: Any, kind: Any, axis: int) -> Any:
    """How far the entries of an array lie from each other along an axis, in numbers."""
    return builder.sdiv(cgutils.unpack_tuple(builder, array.strides, kind.ndim)[axis], _I64(kind.dtype.bitwidth // 8))


def _blocks(points: int, panels: int, turned: bool = False, added: bool = False) -> Any:
    """The intrinsic that puts the sums of :class:`Registers` into an array, or adds them to it."""
    registers = Registers(points, panels, turned)

    @intrinsic
    def block(typingctx: Any, x: Any, panel: Any, out: Any) -> Any:
        """Into ``out`` (points, panels · W), whose rows may lie apart."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result = context.make_array(out)(context, builder, arguments[2])
            of_rows = stride(builder, result, out, 0)
            kind = Vectors(context, builder, x.dtype, PANEL_BYTES // (x.dtype.bitwidth // 8))
            totals = registers.sums(context, builder, signature.args, arguments)
            for b in range(points):
                for p in range(panels):
                    place = builder.add(builder.mul(_I64(b), of_rows), _I64(p * kind.lanes))
                    value = builder.load(totals[b][p])
                    if added:
                        value = builder.fadd(kind.load(result.data, place), value)
                    kind.store(value, result.data, place)
            return context.get_dummy_value()

        return types.void(x, panel, out), codegen

    return block


_several, _single, _one = (_blocks(points, panels) for points, panels in ((POINTS, 1), (1, _ABREAST), (1, 1)))
_mix_several, _mix_four, _mix_one = (_blocks(number, PAIR, turned=True, added=True) for number in (POINTS, 4, 1))


@kernel
def multiply(points: Any, first: int, last: int, panels: Any, start: int, stop: int, found: Any) -> None:
    """⟨x,v⟩ of the points first … last - 1 with the rows of the panels start … stop - 1, into the rows of ``found``."""
    width = panels.shape[2]
    for b in range(first, last - POINTS + 1, POINTS):
        some, rows = points[b : b + POINTS], found[b - first : b - first + POINTS]
        for p in range(start, stop):
            _several(some, panels[p : p + 1], rows[:, (p - start) * width :])
    whole = (stop - start) // _ABREAST * _ABREAST + start
    for b in range(last - (last - first) % POINTS, last):
        row = found[b - first : b - first + 1]
        for p in range(start, whole, _ABREAST):
            _single(points[b : b + 1], panels[p : p + _ABREAST], row[:, (p - start) * width :])
        for p in range(whole, stop):
            _one(points[b : b + 1], panels[p : p + 1], row[:, (p - start) * width :])


@kernel
def mix(vectors: Any, weights: Any, found: Any) -> None:
    """Add Σ_k w_k v_k to ``found`` (d, PAIR · W): vectors (K, d), weights (K, PAIR · W), a lane for each result."""
    dim = vectors.shape[1]
    several = dim - dim % POINTS
    four = dim - (dim - several) % 4
    for j in range(0, several, POINTS):
        _mix_several(vectors[:, j:], weights, found[j:])
    for j in range(several, four, 4):
        _mix_four(vectors[:, j:], weights, found[j:])
    for j in range(four, dim):
        _mix_one(vectors[:, j:], weights, found[j:])


@kernel
def pack(counters: Any, rows: Any, panels: Any) -> None:
    """Turn rows (N, d) into panels (N / W rounded up, d, W); what is left of the last one stays as it is."""
    count, dim = rows.shape
    width = panels.shape[2]
    while True:
        p = take(counters, 0, 1)
        if p >= len(panels):
            return
        for lane in range(min(width, count - p * width)):
            for j in range(dim):
                panels[p, j, lane] = rows[p * width + lane, j]


@kernel
def _tiles(counters: Any, points: Any, panels: Any, found: Any, out: Any) -> None:
    """Take tiles of the panels until none is left; counters[0] is the next, ``found`` has room for each thread."""
    width = panels.shape[2]
    while True:
        start = take(counters, 0, _PANELS)
        if start >= len(panels):
            return
        stop = min(start + _PANELS, len(panels))
        room = found[start // _PANELS]
        valid = min((stop - start) * width, out.shape[1] - start * width)
        for b in range(0, len(points), POINTS):
            last = min(b + POINTS, len(points))
            multiply(points, b, last, panels, start, stop, room)
            for q in range(last - b):
                for n in range(valid):
                    out[b + q, start * width + n] = room[q, n]


@kernel
def _squared_norms(rows: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        total = rows.dtype.type(0)
        for j in range(rows.shape[1]):
            total = fma(rows[i, j], rows[i, j], total)
        out[i] = total
