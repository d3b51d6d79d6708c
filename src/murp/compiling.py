"""A word to whoever waits: the first use of a loop on a machine compiles it, which takes seconds and looks hung."""

from __future__ import annotations

import sys
from typing import Any

from numba.core import event

_WHAT: dict[str, str] = {}


def say(what: str) -> None:
    """One line on standard error, be that a terminal or not."""
    print(f"murp: compiling {what}, once for this machine …", file=sys.stderr, flush=True)


class _Teller(event.Listener):  # type: ignore[misc]
    """Speaks of the first of our kernels that Numba has to compile; those it finds in its cache are no such event."""

    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: Any) -> None:
        what = _WHAT.get(event.data["dispatcher"].py_func.__module__)
        if what is not None and not self.told:
            self.told = True
            say(what)

    def on_end(self, event: Any) -> None:
        """Nobody waits any more."""


def announce(module: str, what: str) -> None:
    """From now on tell when a kernel of ``module`` is compiled, which is for ``what``."""
    if not _WHAT:
        event.register("numba:compile", _Teller())
    _WHAT[module] = what
