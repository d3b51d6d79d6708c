"""A matrix and a vector for each row of a batch, multiplied, and the gradient.

    y_b = M_b x_b   or, transposed,   y_b = M_bᵀ x_b

The matrices are most of what such a step reads and writes. On the CPU each is read once forward and once backward, and
every sum is one thread's, in a fixed order (:mod:`murp.kernels.numba_matrices`); a product of PyTorch's for a batch
takes four times as long. On a GPU it is PyTorch's.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def applied(matrix: Tensor, x: Tensor, transposed: bool = False) -> Tensor:
    """M x: matrices (B, m, d) and vectors (B, d) → (B, m); or Mᵀ x: (B, m, d) and (B, m) → (B, d)."""
    if matrix.device.type == "cpu" and matrix.dim() == 3 and len(matrix) == len(x) and x.dim() == 2:
        found: Tensor = _applied(matrix, x, transposed)
        return found
    turned = matrix.transpose(-1, -2) if transposed else matrix
    return (turned @ x.unsqueeze(-1)).squeeze(-1)


@torch.library.custom_op("murp::applied", mutates_args=())
def _applied(matrix: Tensor, x: Tensor, transposed: bool) -> Tensor:
    from murp.kernels import numba_matrices

    return numba_matrices.applied(matrix.contiguous(), x.contiguous(), transposed)


@_applied.register_fake
def _(matrix: Tensor, x: Tensor, transposed: bool) -> Tensor:
    return x.new_empty(len(x), matrix.shape[2 if transposed else 1])


@torch.library.custom_op("murp::applied_back", mutates_args=())
def _back(of: Tensor, matrix: Tensor, x: Tensor, transposed: bool) -> tuple[Tensor, Tensor]:
    """The gradients of the matrices, of xᵀ or x ofᵀ, and of the vectors, Mᵀ of or M of."""
    from murp.kernels import numba_matrices

    of, x = of.contiguous(), x.contiguous()
    outer = numba_matrices.outer(x, of) if transposed else numba_matrices.outer(of, x)
    return outer, numba_matrices.applied(matrix.contiguous(), of, not transposed)


@_back.register_fake
def _(of: Tensor, matrix: Tensor, x: Tensor, transposed: bool) -> tuple[Tensor, Tensor]:
    return matrix.new_empty(matrix.shape), x.new_empty(x.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    matrix, x, ctx.transposed = inputs
    ctx.save_for_backward(matrix, x)


def _differentiate(ctx: Any, of: Tensor) -> tuple[Tensor, Tensor, None]:
    return *_back(of, *ctx.saved_tensors, ctx.transposed), None


_applied.register_autograd(_differentiate, setup_context=_keep)
