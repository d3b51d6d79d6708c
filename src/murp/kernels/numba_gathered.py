"""The compiled loops of :mod:`murp.kernels.gathered`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import combine, fill, prefetch, product, sums, take
from murp.kernels.products import squared_norms

announce(__name__, "the training step")

AHEAD = 8  # rows that are being loaded while one is multiplied
PARTS = 16  # of the entities, each added up by one thread

dot = sums(product(0, 1))


@kernel
def _products(counters: Any, x: Any, table: Any, indices: Any, out: Any) -> None:
    count, width = indices.shape
    b = take(counters, 0, 1)
    while b < count:
        for k in range(width):
            if k + AHEAD < width:
                prefetch(table, indices[b, k + AHEAD])
            (out[b, k],) = dot((x[b], table[indices[b, k]]))
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
def _add_up(counters: Any, of: Any, x: Any, indices: Any, out: Any) -> None:
    """Add of[b,k] x_b to the row indices[b,k]; a thread takes some of the entities and looks at all occurrences."""
    count, width = indices.shape
    one = out.dtype.type(1.0)
    part = take(counters, 0, 1)
    while part < PARTS:
        first, last = part * len(out) // PARTS, (part + 1) * len(out) // PARTS
        for b in range(count):
            for k in range(width):
                i = indices[b, k]
                if first <= i < last:
                    combine((out[i], x[b]), (one, of[b, k]))
        part = take(counters, 0, 1)


def products(vectors: list[Tensor], table: Tensor, indices: Tensor) -> list[Tensor]:
    """⟨x_b, v⟩ for each of the vectors x (B, d), and |v|², with rows v of the table (N, d): (B, K) each."""
    found = [table.new_empty(indices.shape) for _ in vectors]
    for x, out in zip(vectors, found, strict=True):
        _share(_products, indices, table, x, table, indices, out)
    squares = squared_norms(table).index_select(0, indices.flatten()).view(indices.shape)
    return [*found, squares]


def back(of: list[Tensor], vectors: list[Tensor], table: Tensor, indices: Tensor) -> list[Tensor]:
    """The gradients of the table, Σ of[b,k] x_b over each row's occurrences and 2v times the sum of its square's, and
    of each vector, Σ_k of[b,k] v."""
    *of_products, of_square = of
    # Added up in float64 in one order.
    weights = of_square.flatten().double().numpy()
    twice = 2 * np.bincount(indices.flatten().numpy(), weights=weights, minlength=len(table))
    of_table = table * torch.from_numpy(twice).to(table.dtype).unsqueeze(1)
    of_vectors = [torch.empty_like(x) for x in vectors]
    for own, x, out in zip(of_products, vectors, of_vectors, strict=True):
        _share(_add_up, indices, table, own, x, indices, of_table)
        _share(_back_to_vector, indices, table, own, table, indices, out)
    return [of_table, *of_vectors]


def _share(loop: Any, indices: Tensor, table: Tensor, *tensors: Tensor) -> None:
    work = indices.numel() * table.shape[1]
    threads.share(loop, *(tensor.detach().numpy() for tensor in tensors), work=work)
