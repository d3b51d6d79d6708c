"""Compiled loops: how they are compiled, where the compiled code is cached, and a message for the user who waits.

Every compiled loop of murp is made with :func:`kernel`. It has three properties.

- It releases the interpreter's lock and starts no threads. :mod:`murp.threads` runs it on several.
- No flag lets the compiler reorder, fuse or leave out a floating-point operation. Operations are rounded as written, in
  that order, on every processor. A fused multiply-add is written as ``fma``.
- Its code is cached for the next process in a folder of the user. If none can be written, it is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache

from murp import display
from murp.files import lock, private_folder, user_cache

_WHAT: dict[str, str] = {}
_PAUSE = 0.02  # seconds between two looks at a lock
_KEPT = 8  # folders of compiled code, one for each state of the sources


def kernel(function: Callable[..., Any], key: str = "") -> Any:
    """A function in the subset of Python that Numba compiles; see this module for what it may rely on.

    ``key`` names a function that is made anew in every process with other functions inside, such as a loop over cells
    with the formula of a model: the cache knows it by that name.

    It gets all its arrays as arguments. Then Numba does not count references to arrays, which would slow threads down:
    every row that is used would change a counter that all threads share.
    """
    return _compiled(function, key, _nrt=False)


def allocating_kernel(function: Callable[..., Any]) -> Any:
    """A :func:`kernel` that allocates arrays."""
    return _compiled(function)


def _compiled(function: Callable[..., Any], key: str = "", **further: Any) -> Any:
    folder = _folder()
    if key:  # the name of its file in the cache
        function.__qualname__ = f"{function.__name__}-{key}"
    options = {"nogil": True, "error_model": "numpy", "fastmath": False, **further}
    made = numba.njit(function, **options)
    if folder is not None:
        with _cache_in(folder), contextlib.suppress(RuntimeError):  # no place to keep it
            made._cache = _Cache(function, key)  # in place of Numba's own, which ``cache=True`` would put there
    return made


class _Cache(FunctionCache):  # type: ignore[misc]
    """Numba's, but the work goes on where a file is damaged or the disk is full: what is not kept is compiled.

    Of several processes that need a kernel at the same time one compiles it, and the others wait for that: the ranks of
    a training, trials side by side. A kernel is locked, by a file beside its code, while it and those that it calls are
    compiled; none calls itself, so that nobody waits for each other.
    """

    def __init__(self, function: Callable[..., Any], key: str = "") -> None:
        super().__init__(function)
        self._key = key

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        """By its key if it has one: Numba tells functions apart by what they hold, which differs in every process."""
        if not self._key:
            return super()._index_key(signature, codegen)
        return signature, codegen.magic_tuple(), self._key

    _lock: int | None = None
    _patience = 300.0
    """Seconds of waiting for others, in all: a process that is forked meanwhile keeps a lock and compiles nothing."""

    def load_overload(self, *of: Any) -> Any:
        found = self._kept(*of)
        if found is None and self._lock is None:
            self._wait()
            found = self._kept(*of)
            if found is not None:
                self._release()
        return found

    def _kept(self, *of: Any) -> Any:
        try:
            return super().load_overload(*of)
        except Exception:  # whatever unpickling half a file raises
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *of: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(*of)
        self._release()

    def _wait(self) -> None:
        """Until no other process compiles this kernel; where nothing can be locked, all may."""
        with contextlib.suppress(OSError):
            self._impl.locator.ensure_cache_path()
            self._lock = os.open(f"{self._cache_file._index_path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            while True:
                try:
                    return lock(self._lock)
                except BlockingIOError:
                    if _Cache._patience <= 0:
                        return None
                    _Cache._patience -= _PAUSE
                    time.sleep(_PAUSE)

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@cache
def _folder() -> Path | None:
    """Where compiled code is kept; None if nothing can be written.

    The folder's name has a digest of all sources that hold kernels: Numba looks at the age of a kernel's own file, not
    at that of the kernels it calls. Compiled code is run as it is found, so a folder must be this user's alone.
    """
    for base in _bases():
        folder = base / "kernels" / _digest()
        if not private_folder(folder.parent) or not private_folder(folder):
            continue
        if os.access(folder, os.W_OK | os.X_OK):
            _drop_oldest(folder)
            return folder
    return None


def _bases() -> Iterator[Path]:
    """Folders to try, best first."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given)
        return
    if (base := user_cache()) is not None:
        yield base
    temporary = Path(tempfile.gettempdir()) / f"murp-{os.geteuid()}"
    if private_folder(temporary):  # whoever made it first could put other code there at any moment
        yield temporary


def _sources() -> list[Path]:
    """The files that hold kernels, by their place or their name, and a formula that kernels compile too."""
    package = Path(__file__).parent
    shared = package / "geometry" / "ball_distance.py"
    return sorted([*package.glob("kernels/*.py"), *package.glob("*/numba_*.py"), shared, Path(__file__)])


@cache
def _digest() -> str:
    digest = hashlib.blake2b(digest_size=6)
    digest.update(repr(_processor_settings()).encode())
    for source in _sources():
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()


def for_this_processor() -> bool:
    """Whether code is compiled for the processor as it is: no setting of Numba says that it is another one."""
    return _processor_settings() == (None, None, True)


def _processor_settings() -> tuple[str | None, str | None, bool]:
    """Kernels may be written for the processor (numba_products.POINTS), and these change what that is taken for."""
    settings = numba.config
    return settings.CPU_NAME, settings.CPU_FEATURES, bool(settings.ENABLE_AVX)


def _drop_oldest(mine: Path) -> None:
    """Remove the code of sources long gone from beside ``mine``; a process that still uses it compiles again."""
    with contextlib.suppress(OSError):
        os.utime(mine)  # the newest, though nothing may have been added for long
        folders = sorted(mine.parent.iterdir(), key=lambda folder: folder.stat().st_mtime, reverse=True)
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
    """Prints a message for the first of our kernels that Numba compiles; kernels from the cache do not count."""

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
    """From now on print a message when a kernel of ``module`` is compiled; ``what`` says what it is for."""
    if not _WHAT:
        event.register("numba:compile", _Teller())
    _WHAT[module] = what
