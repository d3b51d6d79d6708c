"""Progress output: if it cannot be written, it is dropped, and the work continues."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console


class Display:
    """A text stream that drops text that ``stream`` cannot write: it may be missing, closed or full, or its reader
    gone."""

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write, or drop, ``text``."""
        with contextlib.suppress(OSError, ValueError):  # ValueError: the stream is closed
            if self.stream is not None:
                self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what has been written, or drop it."""
        with contextlib.suppress(OSError, ValueError):
            if self.stream is not None:
                self.stream.flush()

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        with contextlib.suppress(OSError, ValueError):
            return self.stream is not None and self.stream.isatty()
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def show(line: str, stream: TextIO | None) -> None:
    """One line on ``stream``, at once, or nothing if that cannot be written."""
    print(line, file=Display(stream), flush=True)


def aside(line: str) -> None:
    """A line on standard error about slow work, unless :func:`be_quiet` was called."""
    if not _quiet:
        show(line, sys.stderr)


def be_quiet() -> None:
    """Print no more such lines in this process."""
    global _quiet
    _quiet = True


_quiet = False


def console() -> Console:
    """Standard error for output that redraws itself."""
    from rich.console import Console

    return Console(file=cast(TextIO, Display(sys.stderr)))


def watched() -> bool:
    """Whether standard error is a terminal that can redraw a line."""
    return Display(sys.stderr).isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown")


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which can show HTML."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
