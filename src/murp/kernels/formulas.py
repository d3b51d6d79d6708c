"""Elementwise functions of tensors as straight-line code, with their derivatives, so that one loop can compute them.

PyTorch computes a score's ending in some forty operations on tensors of queries × candidates, and its gradient in some
sixty; each reads and writes memory. :func:`traced` records them once, with ``torch.fx``, as a :class:`Formula`. The
loops of :mod:`murp.kernels.numba_formulas` compute all of them for a few cells at a time.

The derivatives are those that autograd records, so that a gradient that is written out by hand is kept.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

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
# Rows and columns of the cells that a function is recorded with: twice, so that no step depends on them.
_SHAPES = ((2, 3), (5, 7))

Operand = tuple[bool, float]


@dataclass(frozen=True, eq=False)
class Formula:
    """y and its derivatives ∂y/∂x_i by the inputs x of a cell.

    Value i is input i; after the inputs come the results of ``steps``, each an operation and its operands. An operand
    (True, i) is value i, (False, x) the number x. ``outputs``: y and the derivatives; None where y does not depend on
    an input.
    """

    inputs: int
    steps: tuple[tuple[str, tuple[Operand, ...]], ...]
    outputs: tuple[Operand | None, ...]

    @cached_property
    def digest(self) -> str:
        """What tells a formula from all others, in every process; 0.0 is another number than -0.0."""
        return hashlib.blake2b(repr(self).encode(), digest_size=12).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


class _Unknown(Exception):
    """An operation that no loop knows."""


class _GivenAlone(TorchFunctionMode):
    """Refuses tensors that are not on the device ``meta``, and so all but those that a function is given."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from torch.utils._pytree import tree_leaves

        kwargs = kwargs or {}
        if any(isinstance(one, Tensor) and one.device.type != "meta" for one in tree_leaves((args, kwargs))):
            raise _Unknown(func)
        return func(*args, **kwargs)


def traced(
    function: Callable[..., Tensor], inputs: int, dtype: torch.dtype, numbers: tuple[int, int] = (0, 0)
) -> Formula | None:
    """The formula of a function of tensors (B, N), computed number by number; None if it cannot be had.

    ``numbers``: how many of the last inputs are numbers of rows (B, 1) and of columns (N) instead.

    That is so if the function uses other operations than those above, asks for a tensor's numbers, reads tensors other
    than those given, or does something else when it is called again or with tensors of other shapes.
    """

    def value(*given: Tensor) -> list[Tensor]:
        with _GivenAlone():
            return [function(*given)]

    def with_derivatives(*given: Tensor) -> list[Tensor | None]:
        leaves = [tensor.detach().requires_grad_() for tensor in given]
        with torch.enable_grad():
            (found,) = value(*leaves)
        return [found, *torch.autograd.grad(found, leaves, torch.ones_like(found), allow_unused=True)]

    products = inputs - sum(numbers)
    try:
        with torch.inference_mode(False):
            found, again = (_recorded(with_derivatives, [cells] * inputs, dtype) for cells in _SHAPES)
            rows, columns = cells = _SHAPES[0]
            shapes = [cells] * products + [(rows, 1)] * numbers[0] + [(columns,)] * numbers[1]
            plain, real = _recorded(value, [cells] * inputs, dtype), _recorded(value, shapes, dtype)
    except Exception:  # whatever a function raises that cannot do without numbers; it is then computed by PyTorch
        return None
    return found if found == again and plain == real else None


def _recorded(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]], dtype: torch.dtype) -> Formula:
    """The steps of a function of tensors of these shapes, the first of which is that of all cells."""
    from torch.fx.experimental.proxy_tensor import make_fx  # takes most of a second, and few trainings need it

    # Without numbers, so that the function cannot look at them and choose.
    given = [torch.empty(shape, dtype=dtype, device="meta") for shape in shapes]
    return _formula(make_fx(function, _smaller_operations())(*given).graph, dtype, shapes)


@cache
def _smaller_operations() -> dict[Any, Callable[..., Any]]:
    """What PyTorch makes its larger operations of; to list them takes as long as to record a function."""
    from torch._decomp import core_aten_decompositions

    return dict(core_aten_decompositions())


def _formula(graph: torch.fx.Graph, dtype: torch.dtype, shapes: Sequence[tuple[int, ...]]) -> Formula:
    """The operations of a graph in their order."""
    recorder = _Recorder(dtype, shapes)
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

    def __init__(self, dtype: torch.dtype, shapes: Sequence[tuple[int, ...]]) -> None:
        self.dtype = dtype
        self.shapes = {*shapes, (), *((1, *shape) for shape in shapes if len(shape) == 1)}
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
        if tuple(found.shape) not in self.shapes or found.dtype not in (self.dtype, torch.bool) or constant:
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
        # Of a bound that is a tensor NaN counts, too.
        at_least, at_most = (
            given[isinstance(bound, torch.fx.Node)]
            for bound, given in ((low, ("at_least", "maximum")), (high, ("at_most", "minimum")))
        )
        value = value if low is None else self.step(at_least, value, self.operand(low))
        return value if high is None else self.step(at_most, value, self.operand(high))
