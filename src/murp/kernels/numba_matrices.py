"""The compiled loops of :mod:`murp.kernels.matrices`.

``order`` has the rows of a batch by their matrix, so that a matrix is in the cache when the next row wants it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import combine, fill, product, sums, take

announce(__name__, "the training step")

SOME = 16  # rows or matrices that a thread takes at a time

_dot = sums(product(0, 1))


@kernel
def _dots(counters: Any, table: Any, where: Any, order: Any, x: Any, out: Any) -> None:
    """M x: a row of M at a time."""
    start = take(counters, 0, SOME)
    while start < len(order):
        for b in order[start : start + SOME]:
            matrix = table[where[b]]
            for i in range(len(matrix)):
                out[b, i] = _dot((matrix[i], x[b]))[0]
        start = take(counters, 0, SOME)


@kernel
def _mixtures(counters: Any, table: Any, where: Any, order: Any, x: Any, out: Any) -> None:
    """Mᵀ x: the sum of M's rows, each times a coordinate of x; four at a time, so that it is read less often."""
    one = out.dtype.type(1.0)
    whole = table.shape[1] - table.shape[1] % 4
    start = take(counters, 0, SOME)
    while start < len(order):
        for b in order[start : start + SOME]:
            matrix, by, total = table[where[b]], x[b], out[b]
            fill(total, out.dtype.type(0.0))
            for i in range(0, whole, 4):
                rows = (total, matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3])
                combine(rows, (one, by[i], by[i + 1], by[i + 2], by[i + 3]))
            for i in range(whole, len(matrix)):
                combine((total, matrix[i]), (one, by[i]))
        start = take(counters, 0, SOME)


@kernel
def _outer(counters: Any, a: Any, x: Any, begin: Any, order: Any, out: Any) -> None:
    """Σ a_b x_bᵀ over the rows of each matrix r, which are order[begin[r]] … order[begin[r + 1] - 1]."""
    zero, one = out.dtype.type(0.0), out.dtype.type(1.0)
    start = take(counters, 0, SOME)
    while start < len(out):
        for r in range(start, min(start + SOME, len(out))):
            matrix, rows = out[r], order[begin[r] : begin[r + 1]]
            whole = len(rows) - len(rows) % 4
            for i in range(len(matrix)):
                fill(matrix[i], zero)
            for k in range(0, whole, 4):
                b, c, d, e = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
                for i in range(len(matrix)):
                    combine((matrix[i], x[b], x[c], x[d], x[e]), (one, a[b, i], a[c, i], a[d, i], a[e, i]))
            for b in rows[whole:]:
                for i in range(len(matrix)):
                    combine((matrix[i], x[b]), (one, a[b, i]))
        start = take(counters, 0, SOME)


@kernel
def _sort(where: Any, begin: Any, order: Any) -> None:
    """``order``: the places of where (B) by their index, those of one index as they come; from begin[index] on."""
    begin[:] = 0
    for index in where:
        begin[index + 1] += 1
    for index in range(1, len(begin)):
        begin[index] += begin[index - 1]
    for b in range(len(where)):
        order[begin[where[b]]] = b
        begin[where[b]] += 1
    for index in range(len(begin) - 1, 0, -1):
        begin[index] = begin[index - 1]
    begin[0] = 0


def applied(table: Tensor, where: Tensor | None, order: Tensor | None, x: Tensor, transposed: bool) -> Tensor:
    """M x or Mᵀ x with the matrices at ``where`` (B) of a contiguous table (R, m, d), in their order.

    None: the matrices 0 … B - 1.
    """
    out = x.new_empty(len(x), table.shape[2 if transposed else 1])
    _, rows = _parts(order, len(x), len(table))
    at = rows if where is None else where.contiguous().numpy()
    work = 2 * len(x) * table.shape[1] * table.shape[2]
    loop = _mixtures if transposed else _dots
    threads.share(loop, table.detach().numpy(), at, rows, x.detach().numpy(), out.numpy(), work=work)
    return out


def outer(a: Tensor, x: Tensor, order: Tensor | None, count: int) -> Tensor:
    """Σ a_b xᵀ_b over the rows b of each of ``count`` matrices: (B, m) and (B, d) → (R, m, d)."""
    out = x.new_empty(count, a.shape[1], x.shape[1])
    begin, rows = _parts(order, len(x), count)
    work = 2 * max(len(x), count) * a.shape[1] * x.shape[1]
    threads.share(_outer, a.detach().numpy(), x.detach().numpy(), begin, rows, out.numpy(), work=work)
    return out


def ordered(where: Tensor, count: int) -> Tensor:
    """The places of indices (B) of ``count`` matrices by their index: (R + 1 + B).

    First where each index begins among them, and their number; then the places.
    """
    at, found = where.contiguous().numpy(), np.empty(count + 1 + len(where), np.int64)
    if len(at) and not 0 <= at.min() <= at.max() < count:  # a compiled loop would not notice
        raise IndexError(f"indices of {count} matrices are wanted, not from {at.min()} to {at.max()}")
    _sort(at, found[: count + 1], found[count + 1 :])
    return torch.from_numpy(found)


def _parts(order: Tensor | None, size: int, count: int) -> tuple[Any, Any]:
    """Where each matrix begins in the order (R + 1), and the order (B)."""
    if order is None:
        places = np.arange(size + 1)
        return places, places[:-1]
    if len(order) != count + 1 + size:
        raise IndexError(f"{size} indices of {count} matrices are wanted, not {len(order) - count - 1}")
    found = order.numpy()
    return found[: count + 1], found[count + 1 :]
