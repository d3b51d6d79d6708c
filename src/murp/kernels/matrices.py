"""A matrix and a vector for each row of a batch, multiplied, and the gradient.

    y_b = M_b x_b   or, transposed,   y_b = M_bᵀ x_b

The matrices are most of what such a step reads and writes. On the CPU those of a table are read where they lie
(:class:`RowsAt`), and the gradient of one is added up in one place, in the order of its occurrences in the batch. Every
sum is one thread's, in a fixed order (:mod:`murp.kernels.numba_matrices`). On a GPU it is PyTorch's product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from murp.kernels.operators import differentiable, operator


class RowsAt(Mapping[str, Tensor]):
    """Rows (B, …) of tables at indices (B); a table's are copied when they are asked for.

    :func:`applied_at` multiplies by matrices that nobody has copied.
    """

    def __init__(self, tables: Mapping[str, Tensor], where: Tensor) -> None:
        self.tables, self.where = tables, where
        self._copied: dict[str, Tensor] = {}
        self._order: Tensor | None = None

    def __getitem__(self, name: str) -> Tensor:
        if name not in self._copied:
            self._copied[name] = self.tables[name].index_select(0, self.where)
        return self._copied[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __or__(self, other: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {**self, **other}  # as a dictionary of rows, which a model may be given as well

    def __ror__(self, other: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {**other, **self}

    def order(self, count: int) -> Tensor:
        """The order in which matrices are multiplied (:func:`murp.kernels.numba_matrices.ordered`), found once."""
        from murp.kernels import numba_matrices

        if self._order is None:
            self._order = numba_matrices.ordered(self.where, count)
        return self._order

    def at(self, rows: Tensor) -> RowsAt:
        """Of these rows, those at indices (L)."""
        return RowsAt(self.tables, self.where.index_select(0, rows))


def applied(matrix: Tensor, x: Tensor, transposed: bool = False) -> Tensor:
    """M x: matrices (B, m, d) and vectors (B, d) → (B, m); or Mᵀ x: (B, m, d) and (B, m) → (B, d)."""
    if matrix.device.type == "cpu" and matrix.dim() == 3 and len(matrix) == len(x) and x.dim() == 2:
        found: Tensor = _multiply(matrix, None, None, x, transposed)
        return found
    turned = matrix.transpose(-1, -2) if transposed else matrix
    return (turned @ x.unsqueeze(-1)).squeeze(-1)


def applied_at(rows: Mapping[str, Tensor], name: str, x: Tensor, transposed: bool = False) -> Tensor:
    """:func:`applied` with the matrices ``rows[name]`` (B, m, d); those of a :class:`RowsAt` are not copied."""
    if isinstance(rows, RowsAt):
        table = rows.tables[name]
        order = None if torch.compiler.is_compiling() else rows.order(len(table))  # a compiled step cannot contain it
        found: Tensor = _multiply(table, rows.where, order, x, transposed)
        return found
    return applied(rows[name], x, transposed)


def _applied(matrix: Tensor, where: Tensor | None, order: Tensor | None, x: Tensor, transposed: bool) -> Tensor:
    """With the matrices at these indices (B) of a table (R, m, d), in their order if it is known; None: each row of x
    has the matrix of its place."""
    from murp.kernels import numba_matrices

    order = numba_matrices.ordered(where, len(matrix)) if order is None and where is not None else order
    return numba_matrices.applied(matrix.contiguous(), where, order, x.contiguous(), transposed)


_registered = torch.library.custom_op("murp::applied", mutates_args=())(_applied)


@_registered.register_fake
def _(matrix: Tensor, where: Tensor | None, order: Tensor | None, x: Tensor, transposed: bool) -> Tensor:
    return x.new_empty(len(x), matrix.shape[2 if transposed else 1])


def _back(
    of: Tensor, matrix: Tensor, where: Tensor | None, order: Tensor | None, x: Tensor, transposed: bool
) -> tuple[Tensor, Tensor]:
    """The gradients of the matrices, the sums of of xᵀ or x ofᵀ, and of the vectors, Mᵀ of or M of."""
    from murp.kernels import numba_matrices

    order = numba_matrices.ordered(where, len(matrix)) if order is None and where is not None else order
    of, x = of.contiguous(), x.contiguous()
    outer = numba_matrices.outer(*((x, of) if transposed else (of, x)), order, len(matrix))
    return outer, numba_matrices.applied(matrix.contiguous(), where, order, of, not transposed)


_registered_back = torch.library.custom_op("murp::applied_back", mutates_args=())(_back)


@_registered_back.register_fake
def _(
    of: Tensor, matrix: Tensor, where: Tensor | None, order: Tensor | None, x: Tensor, transposed: bool
) -> tuple[Tensor, Tensor]:
    return matrix.new_empty(matrix.shape), x.new_empty(x.shape)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.transposed = inputs
    ctx.save_for_backward(*tensors)


def _differentiate_by(back: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor | None, ...]]:
    def differentiate(ctx: Any, of: Tensor) -> tuple[Tensor | None, ...]:
        # A registered operator without a gradient of its own refuses to be differentiated again.
        once = _registered_back if torch.is_grad_enabled() else back
        of_matrix, of_x = once(of, *ctx.saved_tensors, ctx.transposed)
        return of_matrix, None, None, of_x, None

    return differentiate


_registered.register_autograd(_differentiate_by(_registered_back), setup_context=_keep)
_multiply = operator(_registered, differentiable(_applied, _keep, _differentiate_by(_back)))
