"""Inner products on the CPU: see :mod:`murp.kernels.products`.

Rows are turned into panels of one vector's width, lane l for row l. A block of points meets a panel in registers, one
``fma`` a coordinate. Threads take tiles of panels.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from murp import threads
from murp.compiling import kernel
from murp.kernels.intrinsics import Vectors, fma, take

_PANEL_BYTES = 64
_PANELS = 16  # a tile: with the points' rows it stays in a core's own cache


def _points_at_once() -> int:
    """How many points meet a panel in registers: 12 of 16 with vectors of 32 bytes, 8 of 32 with vectors of 64."""
    features = {} if os.environ.get("NUMBA_CPU_NAME") else binding.get_host_cpu_features()
    return 8 if features.get("avx512f") else 6


_POINTS = _points_at_once()
_ABREAST = 4  # panels that a single point meets at a time


def inner_products(points: Tensor, rows: Tensor, out: Tensor, panels: Any = None) -> None:
    """See :func:`murp.kernels.products.inner_products`; ``out`` has the shape (B, N), ``panels`` are rows packed."""
    panels = packed(rows) if panels is None else panels
    tiles = -(-len(panels) // _PANELS)
    found = np.empty((tiles, _POINTS, _PANELS * panels.shape[2]), panels.dtype)
    work = points.shape[0] * rows.shape[0] * rows.shape[1]
    threads.share(_tiles, points.contiguous().numpy(), panels, found, out.numpy(), work=work)


def packed(rows: Tensor) -> Any:
    """Rows (N, d) as panels (N / W rounded up, d, W), which :func:`multiply` takes: lane l of a panel is a row."""
    array = rows.contiguous().numpy()
    width = _PANEL_BYTES // array.itemsize
    panels = np.zeros((-(-len(array) // width), array.shape[1], width), array.dtype)
    threads.share(pack, array, panels, work=array.size)
    return panels


def squared_norms(rows: Tensor, out: Tensor) -> None:
    """See :func:`murp.kernels.products.squared_norms`."""
    _squared_norms(rows.contiguous().numpy(), out.numpy())


def _blocks(points: int, panels: int, share: int = 1) -> Any:
    """The intrinsic that multiplies so many points (points, d) by so many panels (panels, d, W), or by the first
    W / ``share`` lanes of each."""

    @intrinsic
    def block(typingctx: Any, x: Any, panel: Any, out: Any) -> Any:
        """Into ``out`` (points, panels · W), whose rows may lie apart."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            i64 = ir.IntType(64)
            width = _PANEL_BYTES // (x.dtype.bitwidth // 8)
            vectors = Vectors(context, builder, x.dtype, width // share)
            pointed, turned, result = (
                context.make_array(kind)(context, builder, a) for kind, a in zip(signature.args, arguments, strict=True)
            )
            dim = cgutils.unpack_tuple(builder, pointed.shape, 2)[1]
            totals = [[cgutils.alloca_once(builder, vectors.type) for _ in range(panels)] for _ in range(points)]
            for of_point in totals:
                for total in of_point:
                    builder.store(vectors.zero(), total)
            with cgutils.for_range(builder, dim) as loop:
                of_panels = [
                    vectors.load(
                        turned.data, builder.mul(builder.add(builder.mul(i64(p), dim), loop.index), i64(width))
                    )
                    for p in range(panels)
                ]
                for b in range(points):
                    place = builder.gep(pointed.data, [builder.add(builder.mul(i64(b), dim), loop.index)])
                    coordinate = vectors.spread(builder.load(place))
                    for total, of_panel in zip(totals[b], of_panels, strict=True):
                        builder.store(vectors.fma(coordinate, of_panel, builder.load(total)), total)
            apart = builder.sdiv(cgutils.unpack_tuple(builder, result.strides, 2)[0], i64(vectors.bytes))
            for b in range(points):
                for p in range(panels):
                    vectors.store(
                        builder.load(totals[b][p]), result.data, builder.add(builder.mul(i64(b), apart), i64(p * width))
                    )
            return context.get_dummy_value()

        return types.void(x, panel, out), codegen

    return block


_several, _single, _one = _blocks(_POINTS, 1), _blocks(1, _ABREAST), _blocks(1, 1)
_several_halves, _one_half = _blocks(_POINTS, 1, share=2), _blocks(1, 1, share=2)


@kernel
def multiply(points: Any, first: int, last: int, panels: Any, start: int, stop: int, found: Any) -> None:
    """⟨x,v⟩ of the points first … last - 1 with the rows of the panels start … stop - 1, into the rows of ``found``."""
    width = panels.shape[2]
    for b in range(first, last - _POINTS + 1, _POINTS):
        rows = found[b - first : b - first + _POINTS]
        for p in range(start, stop):
            _several(points[b : b + _POINTS], panels[p : p + 1], rows[:, (p - start) * width :])
    whole = (stop - start) // _ABREAST * _ABREAST + start
    for b in range(last - (last - first) % _POINTS, last):
        row = found[b - first : b - first + 1]
        for p in range(start, whole, _ABREAST):
            _single(points[b : b + 1], panels[p : p + _ABREAST], row[:, (p - start) * width :])
        for p in range(whole, stop):
            _one(points[b : b + 1], panels[p : p + 1], row[:, (p - start) * width :])


@kernel
def multiply_half(points: Any, first: int, last: int, panels: Any, p: int, found: Any) -> None:
    """The same for the first half of the lanes of panel p, into the columns of ``found``: the rest is no row."""
    for b in range(first, last - _POINTS + 1, _POINTS):
        _several_halves(points[b : b + _POINTS], panels[p : p + 1], found[b - first : b - first + _POINTS])
    for b in range(last - (last - first) % _POINTS, last):
        _one_half(points[b : b + 1], panels[p : p + 1], found[b - first : b - first + 1])


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
        for b in range(0, len(points), _POINTS):
            last = min(b + _POINTS, len(points))
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
