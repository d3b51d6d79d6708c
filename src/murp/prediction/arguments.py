"""What Python callers may hand over by mistake, refused by the name of the argument."""

from __future__ import annotations

import operator
from typing import Any

from murp.errors import ConfigError


def count(name: str, value: Any) -> int:
    """A whole number of at least 1, of Python's or of NumPy's."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ConfigError(f"{name} must be a whole number, not {value!r}.") from None
    if number < 1:
        raise ConfigError(f"{name} must be at least 1, not {number}.")
    return number


def identifier(name: str, value: Any) -> str:
    """An id or a name, which is a text even where it looks like a number."""
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be an id or a name, which is a text, not {value!r}.")
    return value
