"""Compiled loops: how they are compiled, where the compiled code is kept, and a word to whoever waits for it.

Every compiled loop of murp is made by :func:`kernel`. It has three properties.

- It releases the interpreter's lock and starts no threads. :mod:`murp.threads` runs it on several.
- No flag lets the compiler reorder, fuse or leave out a floating-point operation. What is written is what is rounded,
  in that order, on every processor. Where a product is to be fused into a sum the code says ``fma``.
- Its code is kept for the next process in a folder of the user's. Where none can be written it is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from murp import display
from murp.files import private_folder, user_cache

_WHAT: dict[str, str] = {}
_KEPT = 8  # folders of compiled code, one for each state of the sources


def kernel(function: Callable[..., Any]) -> Any:
    """A function in the subset of Python that Numba compiles; see this module for what it may rely on.

    It is given all its arrays. Numba then need not count who holds an array, which threads would do at each other's
    expense: every row that is looked at would be counted twice, in one place in memory for all.
    """
    return _compiled(function, _nrt=False)


def allocating_kernel(function: Callable[..., Any]) -> Any:
    """A :func:`kernel` that makes arrays of its own."""
    return _compiled(function)


def _compiled(function: Callable[..., Any], **further: Any) -> Any:
    folder = _folder()
    options = {"nogil": True, "error_model": "numpy", "fastmath": False, **further}
    if folder is None:
        return numba.njit(function, **options)
    with _cache_in(folder):
        try:
            return numba.njit(function, cache=True, **options)
        except RuntimeError:  # no place to keep it
            return numba.njit(function, **options)


@cache
def _folder() -> Path | None:
    """Where compiled code is kept; None where nothing can be written.

    The folder's name has a digest of all sources that hold kernels: Numba looks at the age of a kernel's own file, not
    at that of the kernels it calls. Compiled code is run as it is found, so a folder must be this user's alone.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    bases = [Path(given)] if given else [user_cache(), Path(tempfile.gettempdir()) / f"murp-{os.geteuid()}"]
    for base in bases:
        folder = None if base is None else base / "kernels" / _digest()
        if folder is None or not private_folder(folder.parent) or not private_folder(folder):
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            _drop_oldest(folder.parent)
            return folder
    return None


@cache
def _digest() -> str:
    package = Path(__file__).parent
    sources = [*package.glob("kernels/*.py"), *package.glob("*/numba_*.py"), Path(__file__)]
    digest = hashlib.blake2b(digest_size=6)
    for source in sorted(sources):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def _drop_oldest(home: Path) -> None:
    """Remove the code of sources long gone; a process that still uses it compiles again."""
    with contextlib.suppress(OSError):
        folders = sorted(home.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
        for folder in folders[_KEPT:]:
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _cache_in(folder: Path) -> Iterator[None]:
    """Numba asks this setting where to keep a function when the function is declared; others' stay where they are."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


class _Teller(event.Listener):  # type: ignore[misc]
    """Speaks of the first of our kernels that Numba has to compile; those it finds in its cache are no such event."""

    def __init__(self) -> None:
        self.told = False

    def on_start(self, event: Any) -> None:
        what = _WHAT.get(event.data["dispatcher"].py_func.__module__)
        if what is not None and not self.told:
            self.told = True
            display.aside(f"murp: compiling {what}, once for this machine …")

    def on_end(self, event: Any) -> None:
        """Nobody waits any more."""


def announce(module: str, what: str) -> None:
    """From now on tell when a kernel of ``module`` is compiled, which is for ``what``."""
    if not _WHAT:
        event.register("numba:compile", _Teller())
    _WHAT[module] = what
