"""Inner products on CUDA: see :mod:`murp.kernels.products`.

A program has a block of points and a block of rows. All its cells add in the order of the coordinates, by the same
instructions: a thread has no shorter way for a cell at the edge, only a mask.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

_OPTIONS = {"POINTS": 64, "ROWS": 128, "DIMS": 16, "num_warps": 8}
_OF_ROWS = {"ROWS": 64, "DIMS": 32, "num_warps": 4}


def inner_products(points: Tensor, rows: Tensor, out: Tensor) -> None:
    """See :func:`murp.kernels.products.inner_products`; ``out`` has the shape (B, N)."""
    points, rows = points.contiguous(), rows.contiguous()
    grid = (triton.cdiv(len(rows), _OPTIONS["ROWS"]), triton.cdiv(len(points), _OPTIONS["POINTS"]))
    _products[grid](points, rows, out, len(points), len(rows), points.shape[1], out.stride(0), **_OPTIONS)


@triton.jit(do_not_specialize=["B", "N", "D", "stride"])
def _products(
    points, rows, out, B, N, D, stride, POINTS: tl.constexpr, ROWS: tl.constexpr, DIMS: tl.constexpr
):  # fmt: skip
    b = tl.program_id(1) * POINTS + tl.arange(0, POINTS)
    n = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, DIMS)
    total = tl.zeros([POINTS, ROWS], dtype=out.dtype.element_ty)
    start = 0
    while start < D:
        j = start + lanes
        x = tl.load(
            points + b[:, None].to(tl.int64) * D + j[None, :], mask=(b < B)[:, None] & (j < D)[None, :], other=0.0
        )
        v = tl.load(rows + n[None, :] * D + j[:, None], mask=(n < N)[None, :] & (j < D)[:, None], other=0.0)
        total = tl.dot(x, v, total, input_precision="ieee", out_dtype=out.dtype.element_ty)
        start += DIMS
    tl.store(out + b[:, None].to(tl.int64) * stride + n[None, :], total, mask=(b < B)[:, None] & (n < N)[None, :])


def row_products(x: Tensor, y: Tensor, out: Tensor) -> None:
    """See :func:`murp.kernels.products.row_products`; ``out`` has the shape (N)."""
    x, y = x.contiguous(), y.contiguous()
    _row_products[(triton.cdiv(len(x), _OF_ROWS["ROWS"]),)](x, y, out, len(x), x.shape[1], **_OF_ROWS)


@triton.jit(do_not_specialize=["N", "D"])
def _row_products(x, y, out, N, D, ROWS: tl.constexpr, DIMS: tl.constexpr):
    """Every row has the same lanes, which add up the same columns, and the same sum over them."""
    n = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, DIMS)
    total = tl.zeros([ROWS, DIMS], dtype=out.dtype.element_ty)
    start = 0
    while start < D:
        j = start + lanes
        here, mask = n[:, None] * D + j[None, :], (n < N)[:, None] & (j < D)[None, :]
        total += tl.load(x + here, mask=mask, other=0.0) * tl.load(y + here, mask=mask, other=0.0)
        start += DIMS
    tl.store(out + n, tl.sum(total, 1), mask=n < N)
