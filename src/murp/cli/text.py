"""Plain text for the terminal, the same in a pipe."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from murp.errors import printable
from murp.settings import LARGEST
from murp.widths import columns

if TYPE_CHECKING:
    # The type is private to argparse, and the only name that a subparser's home has.
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = Any


def table(header: Sequence[str], rows: Iterable[Sequence[object]], right: Sequence[int] = ()) -> str:
    """Columns as wide as their widest cell; those numbered in ``right`` are set flush right.

    Names come from files: what a terminal would obey is escaped.
    """
    cells = [[printable(str(cell)) for cell in row] for row in (header, *rows)]
    widths = [max(columns(row[i]) for row in cells) for i in range(len(header))]
    lines = []
    for row in cells:
        blanks = [" " * (width - columns(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append(
            "  ".join(b + c if i in right else c + b for i, (c, b) in enumerate(zip(row, blanks, strict=True)))
        )
    return "\n".join(line.rstrip() for line in lines)


def figure(value: float | None, digits: int = 3) -> str:
    """A metric as the literature prints it; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def whole(*, least: int) -> Callable[[str], int]:
    """An argument type: a whole number of at least ``least`` that the machine can count to."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {value}")
        if value > LARGEST:
            raise argparse.ArgumentTypeError(f"must be at most {LARGEST}, not {value}")
        return value

    return parse


def add_run(command: argparse.ArgumentParser, *, several: bool = False) -> None:
    """The arguments every command on a run folder shares; where it takes several, ``path`` is a list."""
    command.add_argument(
        "path", metavar="RUN", nargs="+" if several else None, help="run folder that `murp train` made"
    )
    command.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        help="weights of the best validation, or the newest; default: best",
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")
