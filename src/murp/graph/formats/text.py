"""Rows separated by tabs (.txt, .tsv) or commas (.csv), with a header or without."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.findings import Finding, noticed
from murp.graph.reading import apoc
from murp.graph.reading.columns import (
    COLUMNS,
    Columns,
    left_out,
    looks_like_header,
    not_understood,
    role_of,
    role_positions,
)
from murp.graph.reading.delimited import first_row, read_columns, rows
from murp.graph.reading.facts import Facts, NoFacts
from murp.graph.reading.streams import split_endings
from murp.graph.reading.tables import further

_SAMPLE = 1000  # rows that the first one is compared with
_FEW, _MANY = 3, 8  # rows that tell nothing of the first, and that tell something
_WORDS = re.compile(r"[^\W\d][\w .:()-]*")


@dataclass(frozen=True)
class Plan:
    """How the rows of a file are read: by what separates them, with which columns, after a header or without."""

    path: Path
    columns: Columns
    delimiter: str
    line: int  # of the first row
    first: Sequence[str]
    titles: Sequence[str]  # of the columns: the three roles, and numbers of the others
    has_header: bool
    left_out: Sequence[str]

    @property
    def unused(self) -> list[str]:
        return [title for title in self.titles if title not in COLUMNS]

    def facts(self, table: pa.Table) -> pa.Table:
        """The rows without the header; an error if the first row is none and no fact either."""
        if self.has_header:
            return table.slice(1)
        if self.columns.header and (why := no_fact(table)) is not None:
            raise not_understood(f"{self.path}, line {self.line}", self.first, why)
        return table

    def told(self, comments: Sequence[str]) -> list[Finding]:
        """What was left out."""
        return [
            *further(self.path.name, self.left_out),
            *noticed("comment_lines", self.path.name, len(comments), "comment line{s} (#) passed over", comments),
        ]

    def place_of(self, row: int) -> str:
        """Where row ``row`` stands, counted from 0."""
        lines = rows(self.path, self.delimiter, len(self.titles))
        return f"{self.path}, line {next(itertools.islice(lines, row + int(self.has_header), None))[0]}"


def plan(path: Path, columns: Columns) -> Plan | None:
    """How to read ``path``; None if it is an export of APOC, which has a reader of its own."""
    delimiter = "," if split_endings(path)[0] == ".csv" else "\t"
    opening = first_row(path, delimiter)
    if opening is None:
        raise NoFacts(f"{path}: is empty. Put rows of head, relation and tail into it.")
    line, first = opening
    where = f"{path}, line {line}"
    if columns.header and apoc.is_export(first) and not columns.chosen:
        return None
    roles = columns.find(first, where) if columns.header and _has_titles(columns, first) else None
    places = roles or columns.numbers() or (0, 1, 2)
    if roles is None:
        _refuse(where, first, columns)
    titles = [f"column {i + 1}" for i in range(max(len(first), 3))]
    for place, role in zip(places, COLUMNS, strict=True):
        titles[place] = role
    without = left_out(first, places) if roles else [title for title in titles if title not in COLUMNS]
    return Plan(path, columns, delimiter, line, first, titles, roles is not None, without)


def read(path: Path, columns: Columns) -> Facts:
    """The rows; names are taken as they stand, and further columns are left out."""
    how = plan(path, columns)
    if how is None:
        delimiter = "," if split_endings(path)[0] == ".csv" else "\t"
        opening = first_row(path, delimiter)
        assert opening is not None
        return apoc.read(path, opening[1], delimiter)
    comments: list[str] = []
    table = read_columns(path, how.titles, how.delimiter, may_be_empty=how.unused, kept=COLUMNS, comments=comments)
    findings = how.told(comments)
    doubtful = not how.has_header and columns.header
    return Facts(how.facts(table), how.place_of, findings=findings, doubtful=doubtful)


def _has_titles(columns: Columns, first: Sequence[str]) -> bool:
    """Whether the first row is to be read as titles: always, unless columns are given by number and it names none."""
    if columns.numbers() is None:
        return True
    return Columns().find(first, "") is not None


def _refuse(where: str, first: Sequence[str], columns: Columns) -> None:
    """Stop where no header was understood and the first row cannot be taken for a fact."""
    if columns.header and len(first) >= 3 and looks_like_header(first):
        raise not_understood(where, first)
    numbers = columns.numbers()
    if columns.chosen and numbers is None:
        raise DataError(f"{where}: without a header columns are given by number, not as {str(columns)!r}.")
    if numbers is not None and (max(numbers) >= len(first) or len(set(numbers)) < 3):
        raise DataError(f"{where}: has {len(first)} fields, and not three different ones of {str(columns)!r}.")
    if numbers is None and len(first) > 3:
        raise DataError(
            f"{where}: {len(first)} fields instead of 3 (head, relation, tail): {first[:20]!r}. Say which are which: "
            "--columns head=1,relation=2,tail=3 (in Python columns=…)."
        )


def no_fact(table: pa.Table) -> str | None:
    """Why the first row of a table is not to be taken for a fact; None if it may be."""
    first = [table[role][0].as_py() for role in COLUMNS]
    if role_positions(first) or looks_like_header(first):
        return "looks like a header and is not understood"
    rest = table.slice(1, _SAMPLE)
    if len(rest) < _FEW:
        return None
    numbers = (pc.all(pc.match_substring_regex(rest[role], "^-?[0-9]+$")).as_py() for role in COLUMNS)
    words = (not field.lstrip("-").isdigit() for field in first)
    if sum(number and word for number, word in zip(numbers, words, strict=True)) >= 2:
        return "has words where the others have numbers"
    ends = {role_of(field) for field in (first[0], first[2]) if len(field) > 1}
    if ends == {"head", "tail"} and not _again(table, first):
        return "looks like a header and is not understood"
    return None


def alone(table: pa.Table) -> bool:
    """Whether nothing of the first row comes again, and no other row is like that: so it is with titles."""
    first = [table[role][0].as_py() for role in COLUMNS]
    rest = table.slice(1)
    if len(rest) < _MANY or not all(_WORDS.fullmatch(field) for field in first):
        return False
    if pc.index(rest["relation"], first[1]).as_py() >= 0 or _again(table, first):
        return False
    lonely = rest.filter(pc.is_in(rest["relation"], value_set=_once(rest["relation"])))
    ends = _once(pa.chunked_array([*rest["head"].chunks, *rest["tail"].chunks], pa.large_string()))
    both = pc.and_(*(pc.is_in(lonely[role], value_set=ends) for role in ("head", "tail")))
    return not pc.any(both).as_py()


def _once(column: pa.ChunkedArray) -> pa.Array:
    """The values that come once."""
    counted = column.value_counts()
    return counted.field("values").filter(pc.equal(counted.field("counts"), 1))


def _again(table: pa.Table, first: Sequence[str]) -> bool:
    """Whether an end of the first row is an end of another one."""
    ends, rest = pa.array([first[0], first[2]], pa.large_string()), table.slice(1)
    return any(pc.any(pc.is_in(rest[role], value_set=ends)).as_py() for role in ("head", "tail"))
