"""Steps of optimizers in flat space as one loop over the rows, on the CPU.

PyTorch goes over a table a dozen times for a step of Adam. Here every row is read and written once. Rows that are not
touched stay as they are.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import combine, elementwise, prefetch, product, sums, take

announce(__name__, "the training step")

SOME = 64  # rows that a thread takes at a time
_AHEAD = 8  # so many rows ahead, memory is asked for a row that may lie anywhere in a table


def marked(rows: int, read: list[Tensor]) -> Tensor:
    """Which of so many rows (rows) are among the indices of any of these tensors."""
    found = torch.zeros(rows, dtype=torch.bool)
    for where in read:
        _mark(where.contiguous().numpy(), found.numpy())
    return found


@kernel
def _mark(where: Any, found: Any) -> None:
    for i in where:
        found[i] = True


def _adam_formula(part: Any, elements: list[Any], numbers: list[Any]) -> list[Any]:
    """m ← m + a₁(g - m),  v ← v + a₂(g² - v),  x ← x + r m / (√(v/c) + ε)."""
    x, mean, square, g = elements
    a1, a2, inverse, eps, rate = numbers
    build = part.builder
    mean = part.fma(a1, build.fsub(g, mean), mean)
    square = part.fma(a2, build.fsub(build.fmul(g, g), square), square)
    root = build.fadd(part.sqrt(build.fmul(square, inverse)), eps)
    return [part.fma(rate, build.fdiv(mean, root), x), mean, square]


def _adagrad_formula(part: Any, elements: list[Any], numbers: list[Any]) -> list[Any]:
    """s ← s + g²,  x ← x + r g / (√s + ε)."""
    x, total, g = elements
    eps, rate = numbers
    total = part.fma(g, g, total)
    root = part.builder.fadd(part.sqrt(total), eps)
    return [part.fma(rate, part.builder.fdiv(g, root), x), total]


_adam_row = elementwise(_adam_formula)
_adagrad_row = elementwise(_adagrad_formula)
_square_of_row = sums(product(0, 0))


@kernel
def _adam(
    counters: Any, x: Any, mean: Any, square: Any, steps: Any, g: Any, where: Any, marks: Any, settings: Any
) -> None:
    lr, beta1, beta2, eps = settings
    kind = x.dtype.type
    log1, log2 = math.log(beta1) if beta1 > 0 else -math.inf, math.log(beta2) if beta2 > 0 else -math.inf
    start = take(counters, 0, SOME)
    while start < len(g):
        for k in range(start, min(start + SOME, len(g))):
            i = k if len(where) == 0 else where[k]
            if k + _AHEAD < len(where):
                for table in (x, mean, square, steps):
                    prefetch(table, where[k + _AHEAD])
            if len(marks) == 0 or marks[k]:
                steps[i, 0] += kind(1.0)
                t = float(steps[i, 0])
                rate = lr / math.expm1(t * log1)  # below 0, as the step is against the gradient
                inverse = -1.0 / math.expm1(t * log2)
                numbers = (kind(1.0 - beta1), kind(1.0 - beta2), kind(inverse), kind(eps), kind(rate))
                _adam_row((x[i], mean[i], square[i], g[k]), numbers)
        start = take(counters, 0, SOME)


@kernel
def _adagrad(counters: Any, x: Any, total: Any, g: Any, where: Any, marks: Any, settings: Any) -> None:
    """By element, or by row where a row has one sum: s ← s + |g|²/d,  x ← x + r g / (√s + ε)."""
    lr, eps = settings
    kind = x.dtype.type
    by_row = total.shape[1] < x.shape[1]
    start = take(counters, 0, SOME)
    while start < len(g):
        for k in range(start, min(start + SOME, len(g))):
            i = k if len(where) == 0 else where[k]
            if k + _AHEAD < len(where):
                for table in (x, total):
                    prefetch(table, where[k + _AHEAD])
            if len(marks) > 0 and not marks[k]:
                continue
            if by_row:
                total[i, 0] += _square_of_row((g[k],))[0] / kind(x.shape[1])
                combine((x[i], g[k]), (kind(1.0), kind(-lr) / (math.sqrt(total[i, 0]) + kind(eps))))
            else:
                _adagrad_row((x[i], total[i], g[k]), (kind(eps), kind(-lr)))
        start = take(counters, 0, SOME)


def adam(
    x: Tensor, state: dict[str, Tensor], gradient: Tensor, where: Tensor | None, marks: Tensor | None, settings: Any
) -> None:
    """A step of Adam with η, β₁, β₂ and ε on rows (n, d) and their state in place: see its docstring, and
    :meth:`murp.optimizers.Optimizer.move`."""
    _share(_adam, (x, state["mean"], state["square"], state["steps"]), gradient, where, marks, settings)


def adagrad(
    x: Tensor, state: dict[str, Tensor], gradient: Tensor, where: Tensor | None, marks: Tensor | None, settings: Any
) -> None:
    """A step of Adagrad with η and ε on rows (n, d) and their sums in place: (n, d), or (n, 1) by row."""
    _share(_adagrad, (x, state["sum"]), gradient, where, marks, settings)


def _share(
    loop: Any, tables: tuple[Tensor, ...], gradient: Tensor, where: Tensor | None, marks: Tensor | None, settings: Any
) -> None:
    given = [
        gradient.contiguous(),
        torch.empty(0, dtype=torch.int64) if where is None else where.contiguous(),
        torch.empty(0, dtype=torch.bool) if marks is None else marks.contiguous(),
    ]
    arrays = [tensor.detach().numpy() for tensor in (*tables, *given)]
    threads.share(loop, *arrays, settings, work=4 * gradient.numel())
