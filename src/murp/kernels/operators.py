"""Operators whose gradient is written out, for steps that are compiled and for those that are not.

A compiled step needs an operator that is registered with PyTorch (``torch.library``). Registered operators pass through
PyTorch's dispatcher in Python several times, which takes a tenth of a millisecond, forward and backward each. Where
nothing is compiled, as on a CPU, an ``autograd.Function`` does the same in a third of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def operator(registered: Callable[..., Any], direct: Callable[..., Any]) -> Callable[..., Any]:
    """One function of two: while a step is compiled it is ``registered``, and otherwise ``direct``."""

    def call(*given: Any) -> Any:
        return (registered if torch.compiler.is_compiling() else direct)(*given)

    return call


def differentiable(
    compute: Callable[..., Any], keep: Callable[..., None], differentiate: Callable[..., Any]
) -> Callable[..., Any]:
    """``compute`` with a gradient; ``keep`` and ``differentiate`` are those of a registered operator."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = compute(*inputs)
            keep(ctx, inputs, output)
            return output

        @staticmethod
        def backward(ctx: Any, *of: Any) -> Any:
            return differentiate(ctx, *of)

    apply: Callable[..., Any] = Function.apply
    return apply
