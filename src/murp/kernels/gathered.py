"""Inner products of each query with candidates of its own, and their gradient, without a tensor of gathered rows.

    xv[b,k] = ⟨x_b, v_i⟩,  vv[b,k] = |v_i|²  with i = indices[b,k]

A step with B queries of K candidates each reads B·K rows. PyTorch copies them (B, K, d) before it multiplies, copies
their gradients, and adds those up by row. Here rows are read where they lie. On the CPU the gradient of a row is added
up in one place, in the order of its occurrences: the same bits on any number of threads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def products(table: Tensor, indices: Tensor, vectors: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Tensor]:
    """The products (B, K) of each of the ``vectors`` (B, d) with rows ``indices`` (B, K) of ``table`` (N, d), and the
    rows' squares (B, K). Differentiable once by the table, densely, and by the vectors."""
    *found, square = _products(table, indices, list(vectors))
    return tuple(found), square


def _kernels(device: torch.device) -> Any:
    if device.type == "cpu":
        from murp.kernels import numba_gathered

        return numba_gathered
    from murp.kernels import triton_gathered

    return triton_gathered


@torch.library.custom_op("murp::gathered", mutates_args=())
def _products(table: Tensor, indices: Tensor, vectors: list[Tensor]) -> list[Tensor]:
    """The products with each vector, then the squares. An operator of PyTorch's, which a compiled step can contain."""
    own = [vector.contiguous() for vector in vectors]
    found: list[Tensor] = _kernels(table.device).products(own, table.contiguous(), indices.contiguous())
    return found


@_products.register_fake
def _(table: Tensor, indices: Tensor, vectors: list[Tensor]) -> list[Tensor]:
    return [table.new_empty(indices.shape) for _ in range(len(vectors) + 1)]


@torch.library.custom_op("murp::gathered_back", mutates_args=())
def _back(of: list[Tensor], table: Tensor, indices: Tensor, vectors: list[Tensor]) -> list[Tensor]:
    """The gradients of the table and of each vector, from those of the products and of the squares."""
    of, own = ([tensor.contiguous() for tensor in tensors] for tensors in (of, vectors))
    found: list[Tensor] = _kernels(table.device).back(of, own, table.contiguous(), indices.contiguous())
    return found


@_back.register_fake
def _(of: list[Tensor], table: Tensor, indices: Tensor, vectors: list[Tensor]) -> list[Tensor]:
    return [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in (table, *vectors)]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    table, indices, vectors = inputs
    ctx.save_for_backward(table, indices, *vectors)


def _differentiate(ctx: Any, of: list[Tensor]) -> tuple[Tensor, None, list[Tensor]]:
    table, indices, *vectors = ctx.saved_tensors
    of_table, *of_vectors = _back(of, table, indices, vectors)
    return of_table, None, of_vectors


_products.register_autograd(_differentiate, setup_context=_keep)
