"""Triton's interpreter, with the same results in half the time; only in the tests' process.

Three parts of it took most of the time: which functions of the language it replaces, which it found out again for each
call of a function; the type of a NumPy array, for which it filled a table each time; and reductions with a function of
ours, for which it called that function for each number instead of for each row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, wraps
from typing import Any, cast

import numpy as np
import pytest


def use() -> None:
    """From now on this process has it; without effect where Triton's is of another form."""
    from triton.runtime import interpreter

    names = ("_get_np_dtype", "_patch_builtin", "_patch_attr", "ReduceOps", "tl")
    known = all(hasattr(interpreter, name) for name in names) and (
        list(inspect.signature(interpreter._patch_builtin).parameters)[2:] == ["scope"]  # not so in Triton 3.4
    )
    if known and not hasattr(interpreter, "quick"):
        interpreter.quick = True
        _remember_types(interpreter)
        _remember_builtins(interpreter)
        _reduce_rows(interpreter)


def slow_reduce() -> Callable[..., Any]:
    """Triton's own reduction with any function; skips a test where it is used anyway."""
    from triton.runtime import interpreter

    if not hasattr(interpreter, "quick"):
        pytest.skip("Triton's interpreter has another form here: see tests/quick_interpreter.py")
    return cast(Callable[..., Any], inspect.unwrap(interpreter.ReduceOps.generic_reduce))


def _remember_types(interpreter: Any) -> None:
    slow, scalar = interpreter._get_np_dtype, interpreter.tl.core.dtype
    by_name: dict[str, np.dtype[Any]] = {}

    def quick(of: Any) -> np.dtype[Any]:
        if type(of) is not scalar:
            return slow(of)
        if of.name not in by_name:
            by_name[of.name] = slow(of)
        return by_name[of.name]

    interpreter._get_np_dtype = quick


def _remember_builtins(interpreter: Any) -> None:
    core = interpreter.tl.core

    @cache
    def builtins(of: Any) -> list[tuple[str, Any]]:
        return [(name, member) for name, member in inspect.getmembers(of) if core.is_builtin(member)]

    for of in (interpreter.tl, core, core.tensor, interpreter.tl.math, core.tensor_descriptor_base):
        builtins(of)  # now, while none is replaced

    def quick(of: Any, builder: Any, scope: Any) -> None:
        for name, member in builtins(of):
            if getattr(of, name) is member:  # replaced already for the function that calls this one
                interpreter._patch_attr(of, name, member, builder, scope)

    interpreter._patch_builtin = quick


def _reduce_rows(interpreter: Any) -> None:
    slow = interpreter.ReduceOps.generic_reduce

    @wraps(slow)
    def quick(self: Any, given: tuple[Any, ...]) -> list[Any]:
        """In Triton's order: each number is combined with what came of those before it."""
        if self.axis is None:
            return list(slow(self, given))
        rows = [np.moveaxis(one.handle.data, self.axis, 0) for one in given]
        kinds = [one.dtype for one in given]
        found = tuple(self.to_tensor(row[0], kind) for row, kind in zip(rows, kinds, strict=True))
        for place in range(1, len(rows[0])):
            further = (self.to_tensor(row[place], kind) for row, kind in zip(rows, kinds, strict=True))
            combined = self.combine_fn.fn(*found, *further)
            found = combined if isinstance(combined, tuple) else (combined,)
        shape = rows[0].shape[1:]
        data = [one.handle.data.reshape(shape) for one in found]
        if self.keep_dims:
            data = [np.expand_dims(one, self.axis) for one in data]
        return [self.to_tensor(one, kind) for one, kind in zip(data, kinds, strict=True)]

    interpreter.ReduceOps.generic_reduce = quick
