"""Inner products on the CPU: see :mod:`murp.kernels.products`.

Rows are turned, some at a time, into panels of one vector's width, lane l for row l. A block of points meets a panel
in registers, one ``fma`` a coordinate. Threads take tiles of panels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from torch import Tensor

from murp import threads
from murp.compiling import allocating_kernel, kernel
from murp.kernels.intrinsics import Vectors, fma, take

_PANEL_BYTES = 64
_PANELS = 16  # a tile: with the points' rows it stays in a core's own cache
_POINTS = 6  # at a time: 12 of the 16 registers of a processor with vectors of 32 bytes
_ABREAST = 4  # panels that a single point meets at a time


def inner_products(points: Tensor, rows: Tensor, out: Tensor) -> None:
    """See :func:`murp.kernels.products.inner_products`; ``out`` has the shape (B, N)."""
    arrays = (points.contiguous().numpy(), rows.contiguous().numpy(), out.numpy())
    threads.share(_tiles, *arrays, work=points.shape[0] * rows.shape[0] * rows.shape[1])


def squared_norms(rows: Tensor, out: Tensor) -> None:
    """See :func:`murp.kernels.products.squared_norms`."""
    _squared_norms(rows.contiguous().numpy(), out.numpy())


def _blocks(points: int, panels: int) -> Any:
    """The intrinsic that multiplies so many points (points, d) by so many panels (panels, d, W)."""

    @intrinsic
    def block(typingctx: Any, x: Any, panel: Any, out: Any) -> Any:
        """Into ``out`` (points, panels · W), whose rows may lie apart."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            i64 = ir.IntType(64)
            width = _PANEL_BYTES // (x.dtype.bitwidth // 8)
            vectors = Vectors(context, builder, x.dtype, width)
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


_several, _single = _blocks(_POINTS, 1), _blocks(1, _ABREAST)


@allocating_kernel
def _tiles(counters: Any, points: Any, rows: Any, out: Any) -> None:
    """Take tiles of the rows until none is left; counters[0] is the next."""
    count, dim = rows.shape
    width = _PANEL_BYTES // rows.itemsize
    tile = _PANELS * width
    panels = np.zeros((_PANELS, dim, width), rows.dtype)
    found = np.empty((_POINTS, tile), rows.dtype)
    whole = points.shape[0] // _POINTS * _POINTS
    while True:
        start = take(counters, 0, tile)
        if start >= count:
            return
        valid = min(tile, count - start)
        # What a tile beyond the last row holds of the one before is multiplied and left.
        for i in range(valid):
            p, lane = divmod(i, width)
            for j in range(dim):
                panels[p, j, lane] = rows[start + i, j]
        for b in range(0, whole, _POINTS):
            for p in range(_PANELS):
                _several(points[b : b + _POINTS], panels[p : p + 1], found[:, p * width : (p + 1) * width])
            for q in range(_POINTS):
                out[b + q, start : start + valid] = found[q, :valid]
        for b in range(whole, points.shape[0]):
            for p in range(0, _PANELS, _ABREAST):
                _single(points[b : b + 1], panels[p : p + _ABREAST], found[:1, p * width : (p + _ABREAST) * width])
            out[b, start : start + valid] = found[0, :valid]


@kernel
def _squared_norms(rows: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        total = rows.dtype.type(0)
        for j in range(rows.shape[1]):
            total = fma(rows[i, j], rows[i, j], total)
        out[i] = total
