"""Inner products of many points with many rows, each cell's bits a function of its point and its row alone.

    ⟨x,v⟩ = fma(x_d, v_d, … fma(x_2, v_2, fma(x_1, v_1, 0)) …)

A matrix product of a library adds in an order that depends on where a row stands, on the shape, on the number of
threads and on the instructions it chooses: equal rows then differ in their last bit, and entities that ought to tie do
not. Here every cell is the same chain of operations that IEEE 754 defines to the bit.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def inner_products(points: Tensor, rows: Tensor, out: Tensor | None = None, panels: Any = None) -> Tensor:
    """⟨x,v⟩ of points (B, d) and rows (N, d): (B, N), in the first rows of ``out`` if that is given.

    ``panels``: on the CPU, the rows as :func:`murp.kernels.numba_products.packed` has packed them. Not differentiable.
    """
    if out is None:
        out = rows.new_empty(len(points), len(rows))
    found = out[: len(points)]
    if found.numel() and rows.device.type == "cpu":
        from murp.kernels import numba_products

        numba_products.inner_products(points, rows, found, panels)
    elif found.numel():
        from murp.kernels import triton_products

        triton_products.inner_products(points, rows, found)
    return found


def squared_norms(rows: Tensor) -> Tensor:
    """|v|² of rows (N, d): (N)."""
    if rows.device.type != "cpu":
        return row_products(rows, rows)
    from murp.kernels import numba_products

    out = rows.new_empty(len(rows))
    numba_products.squared_norms(rows, out)
    return out


def row_products(x: Tensor, y: Tensor) -> Tensor:
    """⟨x_n,y_n⟩ of rows (N, d): (N).

    On a GPU a sum of PyTorch's will not do. From 128 columns on it reads four at a time, from the first address that is
    a multiple of 16 bytes: rows that begin elsewhere add in another order. And the order depends on the number of rows.
    """
    if x.device.type == "cpu" or torch.compiler.is_compiling() or not x.numel():
        return (x * y).sum(1)
    from murp.kernels import triton_products

    out = x.new_empty(len(x))
    triton_products.row_products(x, y, out)
    return out
