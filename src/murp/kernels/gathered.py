"""Inner products of each query with candidates of its own, and their gradient, without a tensor of gathered rows.

    xv[b,k] = ⟨x_b, v_i⟩,  vv[b,k] = |v_i|²  with i = indices[b,k]

A step with B queries of K candidates each reads B·K rows. PyTorch copies them (B, K, d) before it multiplies, copies
their gradients, and adds those up by row. Here rows are read where they lie, and the gradient of a row is added up in
one place, in the order of its occurrences: the same bits on any number of threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def products(table: Tensor, indices: Tensor, vectors: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Tensor]:
    """The products (B, K) of each of the ``vectors`` (B, d) with rows ``indices`` (B, K) of ``table`` (N, d), and the
    rows' squares (B, K). Differentiable by the table, densely, and by the vectors."""
    if table.device.type == "cpu" and table.dtype in (torch.float32, torch.float64):
        *found, square = _Gathered.apply(table, indices, *vectors)
        return tuple(found), square
    # A compiler makes one kernel of this, which does not store the rows either.
    rows = table.index_select(0, indices.flatten()).view(*indices.shape, table.shape[1])
    return tuple((rows * x.unsqueeze(1)).sum(-1) for x in vectors), (rows * rows).sum(-1)


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, table: Tensor, indices: Tensor, *vectors: Tensor) -> Any:
        from murp.kernels import numba_gathered

        table, indices = table.detach().contiguous(), indices.contiguous()
        own = [vector.detach().contiguous() for vector in vectors]
        ctx.save_for_backward(table, indices, *own)
        found = [numba_gathered.products(vector, table, indices) for vector in own]
        return *found, numba_gathered.squares(table, indices)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        from murp.kernels import numba_gathered

        table, indices, *vectors = ctx.saved_tensors
        *of_products, of_square = (gradient.contiguous() for gradient in gradients)
        moved = [numba_gathered.back_to_vector(of, table, indices) for of in of_products]
        return numba_gathered.back_to_table(of_products, of_square, vectors, table, indices), None, *moved
