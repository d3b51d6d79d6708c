"""The content of one file: a table of facts, names if it has some, and what was left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from murp.errors import DataError
from murp.graph.findings import Finding, noticed
from murp.graph.reading.columns import COLUMNS

Names = Mapping[str, tuple[str | None, str | None]]
"""Name and gloss by id."""


class NoFacts(DataError):
    """A file without facts."""


@dataclass(frozen=True)
class Facts:
    """The rows of one file as large_string columns head, relation, tail, in its order.

    ``entity_names`` and ``relation_names`` have columns id, name and gloss. ``findings``: what was changed or left out.
    ``place`` gives the place of row i, counted from 0. ``doubtful``: it was read without a header, but this is not
    certain. ``prefixes``: short forms of the beginnings of ids (``ex`` for ``http://example.org/``), which go before
    the id.
    """

    triples: pa.Table
    place: Callable[[int], str]
    entity_names: pa.Table | None = None
    relation_names: pa.Table | None = None
    findings: list[Finding] = field(default_factory=list)
    doubtful: bool = False
    prefixes: Mapping[str, str] = field(default_factory=dict)


def triples_of(heads: Sequence[str], relations: Sequence[str], tails: Sequence[str]) -> pa.Table:
    """The table of three lists of strings."""
    columns = (pa.array(values, pa.large_string()) for values in (heads, relations, tails))
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def names_of(names: Names) -> pa.Table | None:
    """The table of names that were gathered one by one; None if there are none."""
    if not names:
        return None
    columns: dict[str, list[str | None]] = {"id": [*names], "name": [name for name, _ in names.values()]}
    if any(gloss for _, gloss in names.values()):
        columns["gloss"] = [gloss for _, gloss in names.values()]
    return pa.table({column: pa.array(values, pa.large_string()) for column, values in columns.items()})


class Ids:
    """Ids of one kind as text, one by one, for data in which each value has its own type: JSON, lists.

    A number and a text with its digits become one id; ``findings`` lists them.
    """

    def __init__(self) -> None:
        self._numbers: set[str] = set()
        self._texts: set[str] = set()  # those that may be a number's digits

    def __call__(self, value: object, where: str) -> str:
        """The id of one value, which stands at ``where``."""
        text = identifier(value, where)
        if not isinstance(value, str):
            self._numbers.add(text)
        elif text[-1].isdecimal():
            self._texts.add(text)
        return text

    def findings(self, name: str) -> list[Finding]:
        """Which ids of ``name`` were numbers and texts."""
        both = sorted(self._numbers & self._texts)
        words = "name{s} written as a number in one place and as a text in another, taken as one"
        return noticed("numbers_and_texts", name, len(both), words, both)


def identifier(value: object, where: str) -> str:
    """An id as text: a string, or a whole number in decimal digits; anything else is an error."""
    if isinstance(value, str) and value:
        try:
            value.encode()
        except UnicodeEncodeError:
            raise DataError(f"{where} is not valid Unicode (a lone surrogate): {value!r}. Write it in UTF-8.") from None
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is None or value == "":
        raise DataError(f"{where} is empty. Fill it in or remove the row.")
    raise DataError(f"{where} is {str(value)[:80]!r}; ids are strings or whole numbers.")
