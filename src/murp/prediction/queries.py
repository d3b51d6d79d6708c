"""Files of questions and of triples: rows of names, read into numbers a block at a time.

Tab-separated (.tsv, .txt), comma-separated (.csv), JSON lines (.jsonl) or Parquet (.parquet), the first three also
compressed (.gz, .xz, .zst). A first row with the usual column names is a header. Without a header, two columns are head
and relation, three are head, relation and tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from murp.errors import DataError
from murp.files import parse_json
from murp.graph import Indices, KnowledgeGraph
from murp.graph.names.lookup import Numbers
from murp.graph.reading.columns import COLUMNS, role_of
from murp.graph.reading.delimited import rows as delimited_rows
from murp.graph.reading.parquet import read_table
from murp.graph.reading.streams import split_endings, text_lines

BLOCK = 2**15
"""How many rows are held at once."""

FORMATS_IN_WORDS = ".tsv, .txt, .csv, .jsonl or .parquet"

Row = tuple[str | None, str, str | None]
"""Head, relation and tail; None where the place is open."""

_Fields = tuple[str | None, str | None, str | None]
_SEPARATORS = {".tsv": "\t", ".txt": "\t", ".csv": ","}
_OPEN = ("", "?")
_BATCH = 2**16  # rows of a Parquet file that are Python objects at a time


@dataclass(frozen=True, eq=False)
class Queries:
    """Q questions: subjects (Q) and relations (Q), those from R on asking for heads through the reciprocal."""

    subjects: Indices
    relations: Indices

    def __len__(self) -> int:
        return len(self.subjects)


def read_queries(path: Path, graph: KnowledgeGraph, block: int = BLOCK) -> Iterator[Queries]:
    """The questions of a file, ``block`` at a time: (head, relation) or (relation, tail), one place open."""
    entities, relations = Numbers(graph.entities), Numbers(graph.relations)
    for lines, rows in _blocks(path, block):
        yield _questions(rows, _places(path, lines), entities, relations)


def given_queries(rows: Sequence[Row], graph: KnowledgeGraph) -> Queries:
    """Questions as (head, relation, tail) by id or name, with None for the missing one."""
    numbers = Numbers(graph.entities), Numbers(graph.relations)
    for number, row in enumerate(rows, start=1):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(COLUMNS) or not row[1]:
            raise DataError(
                f"question {number} is {row!r}: a question is (head, relation, tail), one of the ends None."
            )
    return _questions(rows, lambda row: f"question {row + 1}", *numbers)


def _questions(rows: Sequence[Row], where: Callable[[int], str], entities: Numbers, relations: Numbers) -> Queries:
    """Rows as numbers; ``where`` gives the place of a row."""
    for number, (head, _, tail) in enumerate(rows):
        if (head is None) == (tail is None):
            sides = "neither" if head is None else "both"
            raise DataError(
                f"{where(number)}: a question gives a head or a tail, and this row has {sides}. Leave the missing one "
                "empty, or put ? there."
            )
    given = [head or tail or "" for head, _, tail in rows]
    asked = relations.find([relation for _, relation, _ in rows], where)
    asked += len(relations.vocabulary) * np.array([head is None for head, _, _ in rows], dtype=np.int64)
    return Queries(entities.find(given, where), asked)


def read_triples(path: Path, graph: KnowledgeGraph, block: int = BLOCK) -> Iterator[Indices]:
    """The triples of a file in numbers, (n, 3) with n up to ``block``."""
    entities, relations = Numbers(graph.entities), Numbers(graph.relations)
    for lines, rows in _blocks(path, block):
        for line, (head, _, tail) in zip(lines, rows, strict=True):
            if head is None or tail is None:
                raise DataError(
                    f"{place(path, line)}: a triple is head, relation and tail, and a place of this row is empty."
                )
        heads, names, tails = zip(*rows, strict=True)
        numbers = ((entities, heads), (relations, names), (entities, tails))
        where = _places(path, lines)
        yield np.stack([of.find(texts, where) for of, texts in numbers], axis=1)


def _places(path: Path, lines: Sequence[int]) -> Callable[[int], str]:
    return lambda row: place(path, lines[row])


def _blocks(path: Path, size: int) -> Iterator[tuple[Sequence[int], Sequence[Row]]]:
    found = read_rows(path)
    empty = True
    while block := list(islice(found, size)):
        empty = False
        lines, rows = zip(*block, strict=True)
        yield lines, rows
    if empty:
        raise DataError(f"{path}: holds no rows.")


def read_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """(its number, the row) in the order of the file; what is no row is a DataError that says where."""
    form, packed = split_endings(path)
    if form in _SEPARATORS:
        found = _text_rows(path, _SEPARATORS[form])
    elif form == ".jsonl":
        found = _json_rows(path)
    elif form == ".parquet" and not packed:
        found = _parquet_rows(path)
    else:
        raise DataError(f"{path}: not a format that is known here. Known: {FORMATS_IN_WORDS}.")
    for number, (head, relation, tail) in found:
        if not relation:
            raise DataError(f"{place(path, number)}: the relation is empty. Fill it in or remove the row.")
        yield number, (head, relation, tail)


def place(path: Path, number: int) -> str:
    """Where a row stands: its line or, if there are no lines, its row."""
    return f"{path}, {'row' if path.suffix.lower() == '.parquet' else 'line'} {number}"


def column_roles(words: Sequence[str]) -> tuple[str, ...] | None:
    """The role each word names, if all do, each role once at most and the relation and a side among them."""
    roles = tuple(role for word in words if (role := role_of(word)) is not None)
    named = len(roles) == len(words) == len(set(roles)) >= 2 and "relation" in roles
    return roles if named else None


def _text_rows(path: Path, separator: str) -> Iterator[tuple[int, _Fields]]:
    roles: tuple[str, ...] | None = None
    for number, fields in delimited_rows(path, separator):
        if fields[0].lstrip().startswith("#") and len(fields) not in ((2, 3) if roles is None else (len(roles),)):
            continue  # a comment
        if roles is None:
            named = column_roles(fields)
            roles = named or COLUMNS[: max(2, len(fields))]
            # A role without a column is read from the empty field that is appended to every row.
            at_head, at_relation, at_tail = (roles.index(role) if role in roles else -1 for role in COLUMNS)
            if named is not None:
                continue
        if len(fields) != len(roles):
            shown, separated = separator.join(fields), "tabs" if separator == "\t" else "commas"
            raise DataError(
                f"{place(path, number)}: {len(fields)} field{'s' * (len(fields) > 1)} instead of {len(roles)} "
                f"({', '.join(roles)}): {shown[:100]!r}. Fields are separated by {separated}."
            )
        fields.append("")
        head, tail = fields[at_head], fields[at_tail]
        yield number, (None if head in _OPEN else head, fields[at_relation], None if tail in _OPEN else tail)


def _json_rows(path: Path) -> Iterator[tuple[int, _Fields]]:
    for number, line in enumerate(text_lines(path), start=1):
        if not line.strip():
            continue
        try:
            line.encode()
            record: Any = parse_json(line)
        except ValueError as error:
            raise DataError(f"{place(path, number)}: not JSON in UTF-8 ({error}): {line[:100]!r}.") from None
        if not isinstance(record, dict) or not set(record) <= set(COLUMNS):
            raise DataError(
                f'{place(path, number)}: not an object like {{"head": …, "relation": …}} or '
                f'{{"relation": …, "tail": …}}: {line.strip()[:100]!r}.'
            )
        yield number, _strings(path, number, [record.get(role) for role in COLUMNS])


def _parquet_rows(path: Path) -> Iterator[tuple[int, _Fields]]:
    table = read_table(path)
    roles = column_roles(table.column_names)
    if roles is None:
        raise DataError(f"{path}: the columns are {', '.join(table.column_names)}; name them head and relation, or so.")
    number = 0
    for batch in table.to_batches(max_chunksize=_BATCH):
        columns = dict(zip(roles, batch.columns, strict=True))
        values = [columns[r].to_pylist() if r in columns else [None] * len(batch) for r in COLUMNS]
        for row in zip(*values, strict=True):
            number += 1
            yield number, _strings(path, number, row)


def _strings(path: Path, number: int, values: Sequence[object]) -> _Fields:
    head, relation, tail = (_string(path, number, r, v) for r, v in zip(COLUMNS, values, strict=True))
    return head, relation, tail


def _string(path: Path, number: int, role: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise DataError(f"{place(path, number)}: the {role} is {value!r}; ids are strings or whole numbers.")
