"""Tabular results: a table in a notebook, a data frame on request.

A class that derives from :class:`Tabular` defines its columns; the rest follows. pandas is optional: it is imported
when a data frame is made.
"""

from __future__ import annotations

import dataclasses
import html
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from murp.extras import need

SHOWN = 20  # rows of a table in a notebook
Row = TypeVar("Row")


class Tabular:
    """Something with columns of equal length."""

    @abstractmethod
    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Values by the name of their column."""

    def to_dataframe(self) -> Any:
        """The same as a pandas data frame, one row per row."""
        return pandas().DataFrame(dict(self.columns()))

    def _repr_html_(self) -> str:
        # What no row has says nothing to a reader; the frame keeps it.
        columns = {name: cells for name, cells in self.columns().items() if any(cell is not None for cell in cells)}
        return html_table(list(columns), zip(*columns.values(), strict=True))


class Rows(list[Row], Tabular):
    """A list of records of one dataclass ``of``, which is a table too."""

    def __init__(self, of: type[Row], rows: Iterable[Row] = ()) -> None:
        super().__init__(rows)
        self.of = of

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self.of, list(self))

    def columns(self) -> dict[str, list[Any]]:
        names = [field.name for field in dataclasses.fields(self.of)]  # type: ignore[arg-type]
        return {name: [getattr(row, name) for row in self] for name in names}


class Records(list[dict[str, Any]], Tabular):
    """A list of dicts, which is a table too; a dict within a dict has columns ``outer.inner``."""

    def columns(self) -> dict[str, list[Any]]:
        rows = [_flat(row) for row in self]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}


def _flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return found


def pandas() -> Any:
    """The package pandas; an error that names the extra if it is not installed."""
    return need("pandas", "pandas", "a data frame")


def html_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table for a notebook: the first rows, numbers flush right, names escaped."""
    lines: list[str] = []
    left = 0
    for row in rows:
        if len(lines) < SHOWN:
            lines.append("".join(map(_cell, row)))
        else:
            left += 1
    if left:
        lines.append(f'<td colspan="{len(header)}">… {left:,} more</td>')
    head = "".join(f'<th style="text-align:left">{html.escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    return f'<td style="text-align:{"right" if number else "left"}">{html.escape(text)}</td>'
