"""Elementwise functions of tensors as straight-line code, with their derivatives, so that one loop can compute them.

PyTorch computes a score's ending in some forty operations on tensors of queries × candidates, and its gradient in some
sixty; each reads and writes memory. :func:`traced` records them once, with ``torch.fx``, as a :class:`Formula`. The
loops of :mod:`murp.kernels.numba_formulas` compute all of them for a few cells at a time.

The derivatives are those that autograd records, so that a gradient that is written out by hand is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# How many operands the operations of a formula have, by the names that loops know them by.
_OPERANDS = {
    **dict.fromkeys(
        (
            "neg", "abs", "sqrt", "rsqrt", "reciprocal", "square", "exp", "expm1", "log", "log1p", "sinh",
            "cosh", "tanh", "asinh", "acosh", "atanh", "sin", "cos", "asin", "acos", "sigmoid", "relu", "sign",
            "logical_not",
        ),
        1,
    ),
    **dict.fromkeys(
        (
            "add", "sub", "mul", "div", "maximum", "minimum", "at_least", "at_most", "ge", "gt", "le", "lt", "eq", "ne",
            "logical_and", "logical_or",
        ),
        2,
    ),
    "where": 3,
}  # fmt: skip
# The operations of PyTorch that give a tensor itself, a copy of it, or one number in all places.
_VIEWS = ("alias", "detach", "expand", "view", "contiguous", "lift_fresh")
_COPIES = ("clone", "to_copy", "lift_fresh_copy", "expand_copy")
_CONSTANTS = ("scalar_tensor", "full", "full_like", "ones_like", "zeros_like")
_EMPTY = ("empty_permuted", "empty_like", "new_empty_strided")  # what is copied there follows
_STORAGE = {"dtype", "layout", "device", "pin_memory", "memory_format"}  # options that say how a result is stored
_SHAPE = (2, 3)  # of the tensors that a function is recorded with

Operand = tuple[bool, float]


@dataclass(frozen=True)
class Formula:
    """y and its derivatives ∂y/∂x_i by the inputs x of a cell.

    Value i is input i; after the inputs come the results of ``steps``, each an operation and its operands. An operand
    (True, i) is value i, (False, x) the number x. ``outputs``: y and the derivatives; None where y does not depend on
    an input.
    """

    inputs: int
    steps: tuple[tuple[str, tuple[Operand, ...]], ...]
    outputs: tuple[Operand | None, ...]


class _Unknown(Exception):
    """An operation that no loop knows."""


def traced(function: Callable[..., Tensor], inputs: int, dtype: torch.dtype) -> Formula | None:
    """The formula of a function of tensors of one shape, computed number by number; None if it cannot be had.

    That is so if the function uses other operations than those above, asks for a tensor's numbers, or reads tensors
    other than those given.
    """

    def with_derivatives(*given: Tensor) -> list[Tensor | None]:
        leaves = [tensor.detach().requires_grad_() for tensor in given]
        with torch.enable_grad():
            value = function(*leaves)
        return [value, *torch.autograd.grad(value, leaves, torch.ones_like(value), allow_unused=True)]

    # These imports take most of a second, and few trainings need them.
    from torch._decomp import core_aten_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx

    # Without numbers, so that the function cannot look at them and choose.
    given = [torch.empty(_SHAPE, dtype=dtype, device="meta") for _ in range(inputs)]
    try:
        graph = make_fx(with_derivatives, dict(core_aten_decompositions()))(*given).graph
        return _formula(graph, dtype)
    except Exception:  # whatever a function raises that cannot do without numbers; it is then computed by PyTorch
        return None


def _formula(graph: torch.fx.Graph, dtype: torch.dtype) -> Formula:
    """The operations of a graph in their order."""
    recorder = _Recorder(dtype)
    outputs: Sequence[Any] = ()
    for node in graph.nodes:
        if node.op == "placeholder":
            recorder.add_input(node)
        elif node.op == "output":
            outputs = node.args[0]
        elif node.op == "call_function":
            recorder.add(node)
        else:
            raise _Unknown(node)
    found = tuple(None if of is None else recorder.operand(of) for of in outputs)
    return Formula(recorder.inputs, tuple(recorder.steps), found)


class _Recorder:
    """Makes steps of a graph's nodes."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype
        self.inputs = 0
        self.steps: list[tuple[str, tuple[Operand, ...]]] = []
        # The value of each node. Views of a tensor share its place, since what changes it in place changes them.
        self.places: dict[torch.fx.Node, list[Operand]] = {}

    def add_input(self, node: torch.fx.Node) -> None:
        self.places[node] = [(True, float(self.inputs))]
        self.inputs += 1

    def operand(self, given: Any) -> Operand:
        if isinstance(given, torch.fx.Node):
            return self.places[given][0]
        if isinstance(given, bool | int | float):
            return False, float(given)
        raise _Unknown(given)

    def step(self, name: str, *operands: Operand) -> Operand:
        self.steps.append((name, operands))
        return True, float(self.inputs + len(self.steps) - 1)

    def add(self, node: torch.fx.Node) -> None:
        """The steps of a node."""
        written: str = node.target.overloadpacket.__name__  # type: ignore[union-attr]
        name, args = written.strip("_").replace("bitwise", "logical"), node.args
        self._check(name, node)
        if name in _VIEWS:
            self.places[node] = self.places[args[0]]  # type: ignore[index]
        elif name in _COPIES:
            self.places[node] = [self.operand(args[0])]
        elif name in _CONSTANTS:
            number = {"ones_like": 1.0, "zeros_like": 0.0, "scalar_tensor": args[0]}.get(name, args[-1])
            self.places[node] = [self.operand(number)]
        elif name in _EMPTY:
            self.places[node] = [self.operand(math.nan)]
        elif written.endswith("_"):  # in place
            self.places[node] = self.places[args[0]]  # type: ignore[index]
            self.places[node][0] = self._value(name, args, node.kwargs)
        else:
            self.places[node] = [self._value(name, args, node.kwargs)]

    def _check(self, name: str, node: torch.fx.Node) -> None:
        """Raise unless the result is a number of each cell, or one of all, and loops know operands of these kinds."""
        found = node.meta["val"]
        kinds = [of.meta["val"].dtype for of in node.all_input_nodes]
        known = {torch.bool} if name.startswith("logical") else {self.dtype}
        if name == "where":
            condition, *kinds = (of.meta["val"].dtype for of in node.args if isinstance(of, torch.fx.Node))
            known = known if condition == torch.bool else set()
        if name in (*_VIEWS, *_COPIES, *_EMPTY):
            known = {found.dtype}
        constant = name in (*_CONSTANTS, *_EMPTY) and found.dtype != self.dtype
        if found.shape not in (_SHAPE, ()) or found.dtype not in (self.dtype, torch.bool) or constant:
            raise _Unknown(node)
        if not set(kinds) <= known:
            raise _Unknown(node)

    def _value(self, name: str, args: Sequence[Any], options: dict[str, Any]) -> Operand:
        """The result of an operation; those of several kinds are written as plain ones."""
        options = {key: value for key, value in options.items() if key not in _STORAGE}
        if name in ("add", "sub"):
            return self._sum(name, *args, **options)
        if name == "clamp":
            return self._clamped(*args, **options)
        if options:
            raise _Unknown(name, options)
        if name == "copy":
            return self.operand(args[1])
        if name == "pow":
            return self._power(*args)
        if _OPERANDS.get(name) != len(args):
            raise _Unknown(name, args)
        return self.step(name, *map(self.operand, args))

    def _sum(self, name: str, x: Any, y: Any, alpha: float = 1) -> Operand:
        """x ± αy."""
        second = self.operand(y) if alpha == 1 else self.step("mul", self.operand(y), self.operand(alpha))
        return self.step(name, self.operand(x), second)

    def _power(self, x: Any, power: Any) -> Operand:
        """xᵖ of p that is a small multiple of ½."""
        base, twice = self.operand(x), abs(int(2 * power))
        if abs(2 * power) != twice or twice > 8:
            raise _Unknown("pow", power)
        factors = [base] * (twice // 2) + ([self.step("sqrt", base)] if twice % 2 else [])
        found = factors[0] if factors else (False, 1.0)
        for factor in factors[1:]:
            found = self.step("mul", found, factor)
        return found if power >= 0 else self.step("reciprocal", found)

    def _clamped(self, x: Any, low: Any = None, high: Any = None, **named: Any) -> Operand:
        low, high = named.get("min", low), named.get("max", high)
        value = self.operand(x)
        value = value if low is None else self.step("at_least", value, self.operand(low))
        return value if high is None else self.step("at_most", value, self.operand(high))
