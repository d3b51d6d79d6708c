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
    """Σ_k of[b,k] v for each query b; four rows at a time, so that the sum is read and written a quarter as often."""
    count, width = indices.shape
    zero, one = out.dtype.type(0.0), out.dtype.type(1.0)
    whole = width - width % 4
    b = take(counters, 0, 1)
    while b < count:
        total, at, by = out[b], indices[b], of[b]
        fill(total, zero)
        for k in range(0, whole, 4):
            for later in range(k + AHEAD, min(k + AHEAD + 4, width)):
                prefetch(table, at[later])
            rows = (total, table[at[k]], table[at[k + 1]], table[at[k + 2]], table[at[k + 3]])
            combine(rows, (one, by[k], by[k + 1], by[k + 2], by[k + 3]))
        for k in range(whole, width):
            combine((total, table[at[k]]), (one, by[k]))
        b = take(counters, 0, 1)


@kernel
def _sort(indices: Any, start: Any, places: Any, queries: Any) -> None:
    """Occurrences by row: those of row i have these places in ``indices`` and these queries, from start[i] on."""
    start[:] = 0
    count, width = indices.shape
    for b in range(count):
        for k in range(width):
            start[indices[b, k] + 1] += 1
    for i in range(1, len(start)):
        start[i] += start[i - 1]
    for b in range(count):
        for k in range(width):
            at = start[indices[b, k]]
            places[at], queries[at] = b * width + k, b
            start[indices[b, k]] = at + 1
    for i in range(len(start) - 1, 0, -1):
        start[i] = start[i - 1]
    start[0] = 0


@kernel
def _sort_and_back_to_vector(
    counters: Any, start: Any, places: Any, queries: Any, of: Any, table: Any, indices: Any, out: Any
) -> None:
    """One thread sorts, which cannot be shared. The others begin with the gradient of the vector meanwhile."""
    if take(counters, 1, 1) == 0:
        _sort(indices, start, places, queries)
    _back_to_vector(counters, of, table, indices, out)


@kernel
def _back_to_table(
    counters: Any,
    of: Any,
    of_square: Any,
    x: Any,
    table: Any,
    start: Any,
    places: Any,
    queries: Any,
    out: Any,
    first: bool,
) -> None:
    """Σ of x over each row's occurrences: for the first vector with 2v times Σ of_square, for others added to that."""
    zero, one, two = out.dtype.type(0.0), out.dtype.type(1.0), out.dtype.type(2.0)
    row = take(counters, 0, SOME)
    while row < len(out):
        for i in range(row, min(row + SOME, len(out))):
            total, begin, end = out[i], start[i], start[i + 1]
            if first:
                fill(total, zero)
            at = begin
            while at + 4 <= end:  # four at a time, as above
                rows = (total, x[queries[at]], x[queries[at + 1]], x[queries[at + 2]], x[queries[at + 3]])
                combine(rows, (one, of[places[at]], of[places[at + 1]], of[places[at + 2]], of[places[at + 3]]))
                at += 4
            if at + 2 <= end:
                combine((total, x[queries[at]], x[queries[at + 1]]), (one, of[places[at]], of[places[at + 1]]))
                at += 2
            if at < end:
                combine((total, x[queries[at]]), (one, of[places[at]]))
            if first and end > begin:
                twice = zero
                for at in range(begin, end):
                    twice += two * of_square[places[at]]
                combine((total, table[i]), (one, twice))
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
    start = torch.empty(len(table) + 1, dtype=torch.int32)
    places, queries = (torch.empty(indices.numel(), dtype=torch.int32) for _ in range(2))
    order = (start, places, queries)
    of_table, of_vectors = torch.empty_like(table), [torch.empty_like(x) for x in vectors]
    for i, (own, x, out) in enumerate(zip(of_products, vectors, of_vectors, strict=True)):
        first = i == 0
        if first:
            _share(_sort_and_back_to_vector, indices, table, *order, own, table, indices, out)
        else:
            _share(_back_to_vector, indices, table, own, table, indices, out)
        given = (own.flatten(), of_square.flatten(), x, table, *order, of_table)
        _share(_back_to_table, indices, table, *given, more=(first,))
    return [of_table, *of_vectors]


def _share(loop: Any, indices: Tensor, table: Tensor, *tensors: Tensor, more: tuple[bool, ...] = ()) -> None:
    work = indices.numel() * table.shape[1]
    threads.share(loop, *(tensor.detach().numpy() for tensor in tensors), *more, work=work)
