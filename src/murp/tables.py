"""Tables as text for a terminal, as Markdown, as LaTeX and as CSV.

A cell is a text, a number (:func:`number`) or anything that prints itself. A terminal, Markdown and LaTeX show a number
rounded; CSV, which programs read, has all its digits.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from murp.errors import printable
from murp.widths import columns

FORMATS = ("text", "markdown", "latex", "csv")
MISSING = "–"


@dataclass(frozen=True)
class Number:
    """A number and how many ``digits`` are shown after the point; a whole number is grouped by thousands."""

    value: float | None
    digits: int = 3
    sign: bool = False

    def __str__(self) -> str:
        if self.value is None:
            return MISSING
        form = "," if isinstance(self.value, int) else f".{self.digits}f"
        return f"{self.value:{'+' if self.sign else ''}{form}}"


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    right: Sequence[int] = (),
    *,
    format: str = "text",
    about: Mapping[str, object] | None = None,
) -> str:
    """A table in one of ``FORMATS``; the columns numbered in ``right`` are set flush right.

    ``about`` says what all rows share, such as split and protocol. In a terminal the command says that in its own
    words; elsewhere it goes with the table: a line above it, a comment in LaTeX, columns of CSV.
    """
    about, lines = about or {}, [list(row) for row in rows]
    if format == "csv":
        return _csv([*about, *header], [[*about.values(), *row] for row in lines])
    said = ", ".join(f"{name} {value}" for name, value in about.items())
    if format == "markdown":
        return (f"{printable(said)}\n\n" if said else "") + _markdown(header, lines, right)
    if format == "latex":
        return (f"% {_one_line(said)}\n" if said else "") + _latex(header, lines, right)
    return _text(header, lines, right)


def _text(header: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int]) -> str:
    """Columns as wide as their widest cell, the same in a pipe.

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


def _markdown(header: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int]) -> str:
    def line(row: Sequence[object]) -> str:
        return f"| {' | '.join(_one_line(str(cell)).replace('|', chr(92) + '|') for cell in row)} |"

    rule = f"| {' | '.join('---:' if i in right else '---' for i in range(len(header)))} |"
    return "\n".join([line(header), rule, *map(line, rows)])


# What LaTeX would obey.
_SPECIAL: Mapping[str, str] = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", MISSING: "--", "−": "$-$",
    "ρ": r"$\rho$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_ANY_SPECIAL = re.compile("|".join(map(re.escape, _SPECIAL)))


def _latex(header: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[int]) -> str:
    """A tabular with the rules of the package booktabs."""

    def line(row: Sequence[object]) -> str:
        return f"{' & '.join(_ANY_SPECIAL.sub(lambda found: _SPECIAL[found[0]], _one_line(str(c))) for c in row)} \\\\"

    kinds = "".join("r" if i in right else "l" for i in range(len(header)))
    body = [r"\toprule", line(header), r"\midrule", *map(line, rows), r"\bottomrule"]
    return "\n".join([f"\\begin{{tabular}}{{{kinds}}}  % with \\usepackage{{booktabs}}", *body, r"\end{tabular}"])


def _csv(header: Sequence[object], rows: Sequence[Sequence[object]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        plain = (cell.value if isinstance(cell, Number) else cell for cell in row)
        writer.writerow(["" if cell is None or cell == MISSING else cell for cell in plain])
    return out.getvalue().removesuffix("\n")


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ")
