"""Products with gathered rows on CUDA: see :mod:`murp.kernels.gathered`.

A program has a query and some of its candidates, reads their rows once, and has their products and squares. Going back
a program has a query with all its candidates, block by block, and adds to the rows of the table's gradient as they
come: the order of these additions, and with it the last bits, changes from time to time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_NUMBERS = 4096  # of the rows that a program has in its registers


def products(vectors: list[Tensor], table: Tensor, indices: Tensor) -> list[Tensor]:
    """See :func:`murp.kernels.numba_gathered.products`."""
    found = [table.new_empty(indices.shape) for _ in range(len(vectors) + 1)]
    size, width, block = _sizes(table)
    grid = (len(indices), triton.cdiv(indices.shape[1], block))
    for i, (x, out) in enumerate(zip(vectors, found, strict=False)):
        _products[grid](
            table, indices, x, out, found[-1], indices.shape[1], D=size, WIDTH=width, BLOCK=block, SQUARE=i == 0
        )
    return found


def back(of: list[Tensor], vectors: list[Tensor], table: Tensor, indices: Tensor) -> list[Tensor]:
    """See :func:`murp.kernels.numba_gathered.back`."""
    of_table, of_vectors = torch.zeros_like(table), [torch.empty_like(x) for x in vectors]
    size, width, block = _sizes(table)
    for i, (own, x, out) in enumerate(zip(of, vectors, of_vectors, strict=False)):
        _back[len(indices),](
            table, indices, x, own, of[-1], of_table, out, indices.shape[1],
            D=size, WIDTH=width, BLOCK=block, SQUARE=i == 0,
        )  # fmt: skip
    return [of_table, *of_vectors]


def _sizes(table: Tensor) -> tuple[int, int, int]:
    """Numbers of a row, lanes for them, and rows of a block."""
    width = triton.next_power_of_2(table.shape[1])
    return table.shape[1], width, max(1, _NUMBERS // width)


@triton.jit(do_not_specialize=["K"])
def _products(
    table, indices, x, out, square, K, D: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SQUARE: tl.constexpr
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    k = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    j = tl.arange(0, WIDTH)
    own = tl.load(x + b * D + j, mask=j < D, other=0.0)
    row = tl.load(indices + b * K + k, mask=k < K, other=0).to(tl.int64)
    rows = tl.load(table + row[:, None] * D + j[None, :], mask=(k < K)[:, None] & (j < D)[None, :], other=0.0)
    tl.store(out + b * K + k, tl.sum(rows * own[None, :], 1), mask=k < K)
    if SQUARE:
        tl.store(square + b * K + k, tl.sum(rows * rows, 1), mask=k < K)


@triton.jit(do_not_specialize=["K"])
def _back(
    table, indices, x, of, of_square, of_table, of_x, K,
    D: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr, SQUARE: tl.constexpr,
):  # fmt: skip
    b = tl.program_id(0).to(tl.int64)
    j = tl.arange(0, WIDTH)
    own = tl.load(x + b * D + j, mask=j < D, other=0.0)
    total = tl.zeros([WIDTH], of_x.dtype.element_ty)
    start = 0
    while start < K:
        k = start + tl.arange(0, BLOCK)
        row = tl.load(indices + b * K + k, mask=k < K, other=0).to(tl.int64)
        factor = tl.load(of + b * K + k, mask=k < K, other=0.0)
        at = row[:, None] * D + j[None, :]
        mask = (k < K)[:, None] & (j < D)[None, :]
        rows = tl.load(table + at, mask=mask, other=0.0)
        total += tl.sum(factor[:, None] * rows, 0)
        change = factor[:, None] * own[None, :]
        if SQUARE:
            change += 2.0 * tl.load(of_square + b * K + k, mask=k < K, other=0.0)[:, None] * rows
        tl.atomic_add(of_table + at, change, mask=mask, sem="relaxed")
        start += BLOCK
    tl.store(of_x + b * D + j, total, mask=j < D)
