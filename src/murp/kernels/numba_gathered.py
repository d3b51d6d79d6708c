"""The compiled loops of :mod:`murp.kernels.gathered`."""

from __future__ import annotations

from collections.abc import Sequence
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


def products(x: Tensor, table: Tensor, indices: Tensor) -> Tensor:
    """⟨x_b, v⟩: (B, d), (N, d), (B, K) → (B, K)."""
    out = x.new_empty(indices.shape)
    work = indices.numel() * x.shape[1]
    threads.share(_products, x.numpy(), table.numpy(), indices.numpy(), out.numpy(), work=work)
    return out


def squares(table: Tensor, indices: Tensor) -> Tensor:
    """|v|²: (N, d), (B, K) → (B, K)."""
    return squared_norms(table).index_select(0, indices.flatten()).view(indices.shape)


def back_to_vector(of: Tensor, table: Tensor, indices: Tensor) -> Tensor:
    """Σ_k of[b,k] v: (B, K), (N, d), (B, K) → (B, d)."""
    out = table.new_empty(len(indices), table.shape[1])
    work = indices.numel() * table.shape[1]
    threads.share(_back_to_vector, of.numpy(), table.numpy(), indices.numpy(), out.numpy(), work=work)
    return out


def back_to_table(
    of_products: Sequence[Tensor], of_square: Tensor, vectors: Sequence[Tensor], table: Tensor, indices: Tensor
) -> Tensor:
    """The gradient (N, d) of the table: Σ of[b,k] x_b over each row's occurrences, and 2v times the sum of squares'."""
    # Added up in float64 in one order.
    weights = of_square.flatten().double().numpy()
    twice = 2 * np.bincount(indices.flatten().numpy(), weights=weights, minlength=len(table))
    out = table * torch.from_numpy(twice).to(table.dtype).unsqueeze(1)
    work = indices.numel() * table.shape[1]
    for of, x in zip(of_products, vectors, strict=True):
        threads.share(_add_up, of.numpy(), x.numpy(), indices.numpy(), out.numpy(), work=work)
    return out
