"""The compiled loops of :mod:`murp.kernels.gathered`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import combine, fill, prefetch, product, sums, take

announce(__name__, "the training step")

AHEAD = 8  # rows that are being loaded while one is multiplied
SOME = 64  # entities whose gradients a thread adds up at a time

dot_and_square = sums(product(0, 1), product(1, 1))


@kernel
def _products(counters: Any, x: Any, table: Any, indices: Any, out: Any, squares: Any) -> None:
    count, width = indices.shape
    b = take(counters, 0, 1)
    while b < count:
        for k in range(width):
            if k + AHEAD < width:
                prefetch(table, indices[b, k + AHEAD])
            out[b, k], squares[b, k] = dot_and_square((x[b], table[indices[b, k]]))
        b = take(counters, 0, 1)


@kernel
def _back_to_vector(counters: Any, of: Any, table: Any, indices: Any, out: Any) -> None:
    count, width = indices.shape
    one = out.dtype.type(1.0)
    b = take(counters, 0, 1)
    while b < count:
        fill(out[b], out.dtype.type(0.0))
        for k in range(width):
            if k + AHEAD < width:
                prefetch(table, indices[b, k + AHEAD])
            combine((out[b], table[indices[b, k]]), (one, of[b, k]))
        b = take(counters, 0, 1)


@kernel
def _sort(counters: Any, indices: Any, start: Any, order: Any) -> None:
    """Occurrences by row: those of row i are ``order[start[i]:start[i + 1]]``, in their order."""
    start[:] = 0
    for place in range(len(indices)):
        start[indices[place] + 1] += 1
    for i in range(1, len(start)):
        start[i] += start[i - 1]
    for place in range(len(indices)):
        order[start[indices[place]]] = place
        start[indices[place]] += 1
    for i in range(len(start) - 1, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


@kernel
def _back_to_table(
    counters: Any,
    of: Any,
    of_square: Any,
    x: Any,
    table: Any,
    start: Any,
    order: Any,
    width: int,
    first: bool,
    out: Any,
) -> None:
    """Add Σ of x over each row's occurrences to ``out``; for the first vector begin with 2v times Σ of_square."""
    one = out.dtype.type(1.0)
    row = take(counters, 0, SOME)
    while row < len(out):
        for i in range(row, min(row + SOME, len(out))):
            if first:
                twice = out.dtype.type(0.0)
                for at in range(start[i], start[i + 1]):
                    twice += out.dtype.type(2.0) * of_square[order[at]]
                fill(out[i], out.dtype.type(0.0))
                if start[i + 1] > start[i]:
                    combine((out[i], table[i]), (one, twice))
            for at in range(start[i], start[i + 1]):
                combine((out[i], x[order[at] // width]), (one, of[order[at]]))
        row = take(counters, 0, SOME)


def products(vectors: list[Tensor], table: Tensor, indices: Tensor) -> list[Tensor]:
    """⟨x_b, v⟩ for each of the vectors x (B, d), and |v|², with rows v of the table (N, d): (B, K) each."""
    *found, squares = (table.new_empty(indices.shape) for _ in range(len(vectors) + 1))
    for x, out in zip(vectors, found, strict=True):
        _share(_products, indices, table, x, table, indices, out, squares)
    return [*found, squares]


def back(of: list[Tensor], vectors: list[Tensor], table: Tensor, indices: Tensor) -> list[Tensor]:
    """The gradients of the table, Σ of[b,k] x_b over each row's occurrences and 2v times the sum of its square's, and
    of each vector, Σ_k of[b,k] v."""
    *of_products, of_square = of
    start, order = indices.new_empty(len(table) + 1), indices.new_empty(indices.numel())
    threads.share(_sort, indices.flatten().numpy(), start.numpy(), order.numpy(), work=0)
    of_table, of_vectors = torch.empty_like(table), [torch.empty_like(x) for x in vectors]
    arrays = [tensor.detach().numpy() for tensor in (table, start, order)]
    for i, (own, x, out) in enumerate(zip(of_products, vectors, of_vectors, strict=True)):
        given = (tensor.detach().numpy() for tensor in (own.flatten(), of_square.flatten(), x))
        work = indices.numel() * table.shape[1]
        threads.share(_back_to_table, *given, *arrays, indices.shape[1], i == 0, of_table.numpy(), work=work)
        _share(_back_to_vector, indices, table, own, table, indices, out)
    return [of_table, *of_vectors]


def _share(loop: Any, indices: Tensor, table: Tensor, *tensors: Tensor) -> None:
    work = indices.numel() * table.shape[1]
    threads.share(loop, *(tensor.detach().numpy() for tensor in tensors), work=work)
