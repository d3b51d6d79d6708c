"""The compiled loops of :mod:`murp.kernels.tangent_distances`. The candidates of a query stay in the core's cache."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.elementary import FORMATS, exp_minus, log1p
from murp.kernels.intrinsics import fma, product, sums, take

announce(__name__, "the training step")

SOME = 8  # queries that a thread takes at a time
A_PAIR = 16  # operations
_NEAR = 4.0  # r² up to which twelve terms of the series of sinh(r)/r are good to the last bit of a double

_five_sums = sums(product(0, 1), product(0, 2), product(3, 4), product(5, 6), product(7, 8))


def distances(xx: Tensor, vv: Tensor, xv: Tensor, c: Tensor) -> tuple[Tensor, ...]:
    """d² (…, K), and √c d, √(z² + z), S² and w, of which :func:`derivatives` are made.

    From |x|² and c (…, 1), |v|² and ⟨x,v⟩ (…, K), with √c|v| so small that sinh does not overflow.
    """
    found = tuple(torch.empty_like(xv, memory_format=torch.contiguous_format) for _ in range(5))
    kind, width = found[0].numpy().dtype, xv.shape[-1]
    room, wide = np.empty((threads.count(), 2, width), kind), np.empty((threads.count(), 3, width))
    eps, tiny = (kind.type(getattr(np.finfo(kind), name)) for name in ("eps", "tiny"))
    threads.share(
        _forward, *_numbers(xx, c), _own_or_shared(vv), *_rows(xv), eps / kind.type(16), tiny, room,
        room.view(f"i{kind.itemsize}"), FORMATS[kind], wide, wide.view(np.int64), *_rows(*found),
        work=A_PAIR * xv.numel(),
    )  # fmt: skip
    return found


def derivatives(
    of: Tensor, xx: Tensor, vv: Tensor, xv: Tensor, c: Tensor, length: Tensor, root: Tensor, square: Tensor, w: Tensor
) -> tuple[Tensor, ...]:
    """The derivatives by |x|² (…, 1), |v|² and ⟨x,v⟩ (…, K) and c (…, 1) of Σ of d²."""
    by_xx, by_vv, by_xv, by_c = (torch.empty_like(t, memory_format=torch.contiguous_format) for t in (xx, vv, xv, c))
    kind = by_xv.numpy().dtype
    room = np.ones((threads.count(), 4, xv.shape[-1]), kind)
    threads.share(
        _backward, *_numbers(xx, c), _own_or_shared(vv), *_rows(of, xv, length, root, square, w),
        kind.type(np.finfo(kind).eps / 16), room, *_numbers(by_xx, by_c), *_rows(by_vv, by_xv),
        work=A_PAIR * xv.numel(),
    )  # fmt: skip
    return by_xx, by_vv, by_xv, by_c


def _numbers(*tensors: Tensor) -> list[Any]:
    return [tensor.reshape(-1).numpy() for tensor in tensors]


def _rows(*tensors: Tensor) -> list[Any]:
    return [tensor.reshape(-1, tensor.shape[-1]).contiguous().numpy() for tensor in tensors]


def _own_or_shared(vv: Tensor) -> Any:
    """Rows (B, K), or one row (1, K) if all are the same by their place in memory."""
    shared = vv.dim() == 2 and vv.stride(0) == 0
    return _rows(vv[:1] if shared else vv)[0]


@kernel
def _forward(
    counters: Any, xx: Any, c: Any, vv: Any, xv: Any, least: Any, tiny: Any, room: Any, bits: Any, form: Any, wide: Any,
    wide_bits: Any, squared: Any, length: Any, root: Any, square: Any, w: Any,
) -> None:  # fmt: skip
    """Take some queries until none is left; counters[0] is the next, counters[1] the next thread's room."""
    thread = take(counters, 1, 1)
    if thread >= len(room):  # more threads than when it was made: the others do the work
        return
    y, scratch, scratch_bits = room[thread, 0], room[thread, 1], bits[thread, 1]
    real = y.dtype.type
    one, two, width = real(1), real(2), len(y)
    while True:
        start = take(counters, 0, SOME)
        if start >= len(c):
            return
        for b in range(start, min(start + SOME, len(c))):
            curvature, gap = c[b], one - c[b] * xx[b]
            v = vv[b if len(vv) > 1 else 0]
            far = False
            for k in range(width):
                far |= not curvature * v[k] <= real(_NEAR)
            ratio = w[b]  # sinh(r)/r at first
            for k in range(width):
                ratio[k] = _sinh_series(max(curvature * v[k], least))
            if far:
                _sinh_by_exp(curvature, v, wide[thread], wide_bits[thread, 1], ratio)
            shift, by_square, by_product = (
                curvature * xx[b] / gap,
                (one + curvature * xx[b]) / gap,
                two * curvature / gap,
            )
            for k in range(width):
                s = curvature * v[k] * ratio[k] * ratio[k]
                square[b, k] = s
                w[b, k] = ratio[k] * np.sqrt(one + s)
                z = fma(by_square, s, shift) - by_product * (xv[b, k] * w[b, k])
                z = (-tiny if z < -tiny else z) + two * tiny
                root[b, k] = np.sqrt(z * (z + one))
                y[k] = two * (z + root[b, k])
            log1p(y, scratch, scratch_bits, form, length[b])
            for k in range(width):
                squared[b, k] = length[b, k] * length[b, k] / curvature


@kernel
def _sinh_series(t: Any) -> Any:
    """sinh(r)/r from t = r² up to 4: Σ tᵏ / (2k + 1)!."""
    real = type(t)
    series = real(1 / 15511210043330985984000000)
    series = fma(series, t, real(1 / 25852016738884976640000))
    series = fma(series, t, real(1 / 51090942171709440000))
    series = fma(series, t, real(1 / 121645100408832000))
    series = fma(series, t, real(1 / 355687428096000))
    series = fma(series, t, real(1 / 1307674368000))
    series = fma(series, t, real(1 / 6227020800))
    series = fma(series, t, real(1 / 39916800))
    series = fma(series, t, real(1 / 362880))
    series = fma(series, t, real(1 / 5040))
    series = fma(series, t, real(1 / 120))
    series = fma(series, t, real(1 / 6))
    return fma(series, t, real(1))


@kernel
def _sinh_by_exp(c: Any, vv: Any, wide: Any, bits: Any, ratio: Any) -> None:
    """sinh(r)/r = (1/e - e) / 2r with e = exp(-r), where r² = c|v|² is beyond the series."""
    r, scratch, e = wide[0], wide[1], wide[2]
    for k in range(len(vv)):
        r[k] = np.sqrt(np.float64(c * vv[k]))
    exp_minus(r, scratch, bits, e)
    for k in range(len(vv)):
        if not c * vv[k] <= vv.dtype.type(_NEAR):
            ratio[k] = vv.dtype.type((1 / e[k] - e[k]) / (2 * r[k]))


@kernel
def _backward(
    counters: Any, xx: Any, c: Any, vv: Any, of: Any, xv: Any, length: Any, root: Any, square: Any, w: Any, least: Any,
    room: Any, by_xx: Any, by_c: Any, by_vv: Any, by_xv: Any,
) -> None:  # fmt: skip
    thread = take(counters, 1, 1)
    if thread >= len(room):  # more threads than when it was made: the others do the work
        return
    by_z, by_zw, squares, ones = room[thread, 0], room[thread, 1], room[thread, 2], room[thread, 3]
    real = by_z.dtype.type
    one, two, width = real(1), real(2), len(by_z)
    while True:
        start = take(counters, 0, SOME)
        if start >= len(c):
            return
        for b in range(start, min(start + SOME, len(c))):
            curvature, gap = c[b], one - c[b] * xx[b]
            along, bend, by_product = (one + curvature * xx[b]) / gap, curvature / gap, -two * curvature / gap
            factor = two / curvature
            v = vv[b if len(vv) > 1 else 0]
            by_t = by_vv[b]  # T at first
            for k in range(width):
                g = length[b, k] / root[b, k] * of[b, k] * factor
                by_z[k] = g
                by_zw[k] = g * w[b, k]
                bent = (one - w[b, k] + two * square[b, k]) / max(curvature * v[k], least) * xv[b, k] * g
                by_t[k] = along * by_zw[k] - bend * bent
                squares[k] = length[b, k] * length[b, k]
            given = (by_z, square[b], ones, by_zw, xv[b], by_t, v, of[b], squares)
            of_squares, of_all, crossed, moved, itself = _five_sums(given)
            both = of_all + two * of_squares
            by_xx[b] = curvature * (both - two * curvature * crossed) / (gap * gap)
            by_c[b] = (xx[b] * both - two * crossed) / (gap * gap) + moved - itself / (curvature * curvature)
            for k in range(width):
                by_vv[b, k] *= curvature
                by_xv[b, k] = by_zw[k] * by_product
