"""The compiled loops of :mod:`murp.kernels.matrices`."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import combine, elementwise, fill, product, sums, take

announce(__name__, "the training step")

SOME = 16  # matrices that a thread takes at a time

_dot = sums(product(0, 1))
_scaled = elementwise(lambda part, elements, numbers: [part.builder.fmul(elements[1], numbers[0])])


@kernel
def _dots(counters: Any, matrix: Any, x: Any, out: Any) -> None:
    """M x: a row of M at a time."""
    start = take(counters, 0, SOME)
    while start < len(x):
        for b in range(start, min(start + SOME, len(x))):
            for i in range(matrix.shape[1]):
                out[b, i] = _dot((matrix[b, i], x[b]))[0]
        start = take(counters, 0, SOME)


@kernel
def _mixtures(counters: Any, matrix: Any, x: Any, out: Any) -> None:
    """Mᵀ x: the sum of M's rows, each times a coordinate of x."""
    one = out.dtype.type(1.0)
    start = take(counters, 0, SOME)
    while start < len(x):
        for b in range(start, min(start + SOME, len(x))):
            fill(out[b], out.dtype.type(0.0))
            for i in range(matrix.shape[1]):
                combine((out[b], matrix[b, i]), (one, x[b, i]))
        start = take(counters, 0, SOME)


@kernel
def _outer(counters: Any, a: Any, x: Any, out: Any) -> None:
    start = take(counters, 0, SOME)
    while start < len(x):
        for b in range(start, min(start + SOME, len(x))):
            for i in range(a.shape[1]):
                _scaled((out[b, i], x[b]), (a[b, i],))
        start = take(counters, 0, SOME)


def applied(matrix: Tensor, x: Tensor, transposed: bool) -> Tensor:
    """M x or Mᵀ x for contiguous matrices (B, m, d)."""
    out = x.new_empty(len(x), matrix.shape[2 if transposed else 1])
    _share(_mixtures if transposed else _dots, matrix, x, out, work=2 * matrix.numel())
    return out


def outer(a: Tensor, x: Tensor) -> Tensor:
    """a xᵀ: (B, m) and (B, d) → (B, m, d)."""
    out = x.new_empty(len(x), a.shape[1], x.shape[1])
    _share(_outer, a, x, out, work=2 * out.numel())
    return out


def _share(loop: Any, *tensors: Tensor, work: int) -> None:
    threads.share(loop, *(tensor.detach().numpy() for tensor in tensors), work=work)
