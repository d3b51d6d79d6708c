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
from murp.kernels.intrinsics import elementwise, take

announce(__name__, "the training step")

SOME = 64  # rows that a thread takes at a time


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


@kernel
def _adam(counters: Any, x: Any, mean: Any, square: Any, steps: Any, g: Any, touched: Any, settings: Any) -> None:
    lr, beta1, beta2, eps = settings
    kind = x.dtype.type
    log1, log2 = math.log(beta1) if beta1 > 0 else -math.inf, math.log(beta2) if beta2 > 0 else -math.inf
    start = take(counters, 0, SOME)
    while start < len(x):
        for i in range(start, min(start + SOME, len(x))):
            if len(touched) == 0 or touched[i]:
                steps[i, 0] += kind(1.0)
                t = float(steps[i, 0])
                rate = lr / math.expm1(t * log1)  # below 0, as the step is against the gradient
                inverse = -1.0 / math.expm1(t * log2)
                numbers = (kind(1.0 - beta1), kind(1.0 - beta2), kind(inverse), kind(eps), kind(rate))
                _adam_row((x[i], mean[i], square[i], g[i]), numbers)
        start = take(counters, 0, SOME)


@kernel
def _adagrad(counters: Any, x: Any, total: Any, g: Any, touched: Any, settings: Any) -> None:
    lr, eps = settings
    kind = x.dtype.type
    start = take(counters, 0, SOME)
    while start < len(x):
        for i in range(start, min(start + SOME, len(x))):
            if len(touched) == 0 or touched[i]:
                _adagrad_row((x[i], total[i], g[i]), (kind(eps), kind(-lr)))
        start = take(counters, 0, SOME)


def adam(
    x: Tensor, state: dict[str, Tensor], gradient: Tensor, touched: Tensor | None, *, lr: float, beta1: float,
    beta2: float, eps: float,
) -> None:  # fmt: skip
    """A step of Adam on rows (n, m) and their state in place; ``touched`` (n, 1), None: all. See Adam's docstring."""
    own = (x, state["mean"], state["square"], state["steps"], gradient)
    _share(_adam, own, touched, (lr, beta1, beta2, eps))


def adagrad(
    x: Tensor, state: dict[str, Tensor], gradient: Tensor, touched: Tensor | None, *, lr: float, eps: float
) -> None:
    """A step of Adagrad on rows (n, m) and their sums in place."""
    _share(_adagrad, (x, state["sum"], gradient), touched, (lr, eps))


def _share(loop: Any, tensors: tuple[Tensor, ...], touched: Tensor | None, settings: tuple[float, ...]) -> None:
    rows = [tensor.detach().numpy() for tensor in (*tensors[:-1], tensors[-1].contiguous())]
    marks = (rows[0][:0, 0] if touched is None else touched.flatten()) != 0
    threads.share(loop, *rows, marks if touched is None else marks.numpy(), settings, work=4 * tensors[0].numel())
