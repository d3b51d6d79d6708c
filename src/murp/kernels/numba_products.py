"""Inner products on the CPU: see :mod:`murp.kernels.products`.

Rows are turned into panels of one vector's width, lane l for row l. A block of points meets panels in registers, one
``fma`` a coordinate. Threads take tiles of panels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
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

PANEL_BYTES = 64
_PANELS = 16  # a tile: with the points' rows it stays in a core's own cache
PITCH = 256  # of rows of weights


def _wide() -> bool:
    """Whether the processor has 32 registers of 64 bytes, or half as many of half the size or less."""
    features = {} if os.environ.get("NUMBA_CPU_NAME") else binding.get_host_cpu_features()
    return bool(features.get("avx512f"))


# A block of points meets some panels in registers: 8 points and 2 panels take 16 of 32 registers, 6 points and a panel
# 12 of 16. With one panel only, every product reads a number from the cache, which two units for products wait for.
POINTS, _PAIR = (8, 2) if _wide() else (6, 1)
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


def _blocks(points: int, shares: Sequence[int], along: int = 1, apart: int | None = None) -> Any:
    """The intrinsic that multiplies so many points by vectors of d numbers side by side.

    These are panels (panels, d, W), or rows (d, m) of which W numbers are one. ``shares`` has a number for each panel:
    its first W / share lanes are wanted. The numbers of a point lie ``along`` from each other and points lie ``apart``,
    by default as far as the rows of their array. Known distances need no registers.
    """

    @intrinsic
    def block(typingctx: Any, x: Any, panel: Any, out: Any) -> Any:
        """Into ``out`` (points, panels · W), whose rows may lie apart."""

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            i64 = ir.IntType(64)
            width = PANEL_BYTES // (x.dtype.bitwidth // 8)
            kinds = [Vectors(context, builder, x.dtype, width // share) for share in shares]
            pointed, vectors, result = (
                context.make_array(kind)(context, builder, a) for kind, a in zip(signature.args, arguments, strict=True)
            )

            def stride(array: Any, axis: int, ndim: int) -> Any:
                return builder.sdiv(cgutils.unpack_tuple(builder, array.strides, ndim)[axis], i64(kinds[0].bytes))

            dim = cgutils.unpack_tuple(builder, vectors.shape, panel.ndim)[panel.ndim - 2]
            between = stride(pointed, 0, 2) if apart is None else i64(apart)
            of_panels = stride(vectors, 0, 3) if panel.ndim == 3 else i64(width)
            down, of_rows = stride(vectors, panel.ndim - 2, panel.ndim), stride(result, 0, 2)
            totals = [[cgutils.alloca_once_value(builder, kind.zero()) for kind in kinds] for _ in range(points)]

            def add(at: Any) -> None:
                """The products of one coordinate."""
                here, there = builder.mul(at, down), builder.mul(at, i64(along))
                loaded = [
                    kind.load(vectors.data, builder.add(builder.mul(i64(p), of_panels), here))
                    for p, kind in enumerate(kinds)
                ]
                for b in range(points):
                    place = builder.gep(pointed.data, [builder.add(there, builder.mul(i64(b), between))])
                    coordinate = builder.load(place)
                    for kind, total, vector in zip(kinds, totals[b], loaded, strict=True):
                        builder.store(kind.fma(kind.spread(coordinate), vector, builder.load(total)), total)

            # Two at a time: where the compiler chooses, it keeps numbers of the second for so long that sums must wait.
            whole = builder.and_(dim, i64(-2))
            with cgutils.for_range_slice(builder, i64(0), whole, i64(2), i64) as (at, _):
                add(at)
                add(builder.add(at, i64(1)))
            with builder.if_then(builder.icmp_signed("<", whole, dim)):
                add(whole)
            for b in range(points):
                for p, kind in enumerate(kinds):
                    place = builder.add(builder.mul(i64(b), of_rows), i64(p * width))
                    kind.store(builder.load(totals[b][p]), result.data, place)
            return context.get_dummy_value()

        return types.void(x, panel, out), codegen

    return block


_several, _single, _one = (_blocks(points, (1,) * panels) for points, panels in ((POINTS, 1), (1, _ABREAST), (1, 1)))
_group_with_pair, _group_with_one = (_blocks(POINTS, (1,) * panels, POINTS, 1) for panels in (_PAIR, 1))
_mix_pair, _mix_one, _mix_pair_and_half, _mix_half = (
    _blocks(POINTS, shares, 1, PITCH) for shares in ((1,) * _PAIR, (1,), (1, 1, 2), (2,))
)


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
def multiply_groups(groups: Any, panels: Any, start: int, stop: int, found: Any) -> None:
    """:func:`multiply` with groups of points (n, d, POINTS), turned so that those of a group lie side by side."""
    width = panels.shape[2]
    pairs = start + (stop - start) // _PAIR * _PAIR
    for g in range(len(groups)):
        rows = found[g * POINTS :]
        for p in range(start, pairs, _PAIR):
            _group_with_pair(groups[g], panels[p : p + _PAIR], rows[:, (p - start) * width :])
        for p in range(pairs, stop):
            _group_with_one(groups[g], panels[p : p + 1], rows[:, (p - start) * width :])


@kernel
def mix(weights: Any, number: int, rows: Any, width: int, found: Any) -> None:
    """Σ_k w_k v_k: weights (…, PITCH) and rows (K, d) → the first d columns of ``found`` (…, d / W rounded up · W).

    For so many rows of weights, up to the next whole group of points. Other columns get numbers of no use. Of the last
    row up to W - 1 numbers are read beyond its end.
    """
    dim = rows.shape[1]
    whole = (dim + width // 2 - 1) // width * width  # columns of panels of which more than half is wanted
    beside = 2 * width if whole < dim and _PAIR == 2 and whole >= 2 * width else 0  # multiplied with the half panel
    pairs = (whole - beside) // (_PAIR * width) * (_PAIR * width)
    for b in range(0, number, POINTS):
        some, out = weights[b:], found[b:]
        for p in range(0, pairs, _PAIR * width):
            _mix_pair(some, rows[:, p:], out[:, p:])
        for p in range(pairs, whole - beside, width):
            _mix_one(some, rows[:, p:], out[:, p:])
        if beside > 0:
            _mix_pair_and_half(some, rows[:, whole - beside :], out[:, whole - beside :])
        elif whole < dim:
            _mix_half(some, rows[:, whole:], out[:, whole:])


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
