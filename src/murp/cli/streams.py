"""Standard output and standard error of a command, which may be missing, closed, full, or of another encoding."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

from murp.display import Display

ESCAPE = "murp.escape"


class Output:
    """Standard output that remembers why writing failed.

    One that is missing, as after ``>&-``, refuses what is ``needed``, and takes everything where nothing is.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.stream = stream
        self.needed = True
        self.refusal: OSError | None = None

    def write(self, text: str) -> int:
        """Write ``text``; what the system refuses is remembered and raised."""
        with self._remembered():
            if self.stream is not None:
                return self.stream.write(text)
            if self.needed and text:
                raise OSError(errno.EBADF, "it is closed")
            return len(text)

    def flush(self) -> None:
        """Hand on what has been written; what the system refuses is remembered and raised."""
        with self._remembered():
            if self.stream is not None:
                self.stream.flush()

    def check(self) -> None:
        """Hand on what has been written, and raise what was refused, now or before: not all who write heed it."""
        self.flush()
        if self.refusal is not None:
            raise self.refusal

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    @contextlib.contextmanager
    def _remembered(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.refusal = error
            raise


@contextlib.contextmanager
def standard_streams() -> Iterator[Output]:
    """Standard output that remembers, and standard error that drops, what cannot be written.

    Characters that the encoding of standard output does not have are escaped.
    """
    _fill_gaps()
    output, display = Output(_if_open(sys.stdout)), Display(_if_open(sys.stderr))
    _escape_the_rest(output.stream)
    try:
        with contextlib.redirect_stdout(cast(TextIO, output)), contextlib.redirect_stderr(cast(TextIO, display)):
            yield output
    finally:
        for stream in (output.stream, display.stream):
            _settle(stream)


def _fill_gaps() -> None:
    """Open nothing in place of standard streams that were closed: the next file would take their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            _to_nothing(number)


def _if_open(stream: TextIO | None) -> TextIO | None:
    return None if stream is None or stream.closed else stream


def _escape_the_rest(stream: TextIO | None) -> None:
    codecs.register_error(ESCAPE, _escaped)
    # Whoever asked for another way (PYTHONIOENCODING=ascii:replace) keeps it.
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors=ESCAPE)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    r"""Characters as ``\u00e9``, as JSON writes them: what a program reads stays JSON in any encoding."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)), error.end


def _settle(stream: TextIO | None) -> None:
    """Flush the stream. If that fails, drop the rest: otherwise the interpreter would complain at its end."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            _to_nothing(stream.fileno())


def _to_nothing(number: int) -> None:
    """Whatever is written to the open file ``number`` from now on goes nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, number)
    if nothing != number:
        os.close(nothing)
