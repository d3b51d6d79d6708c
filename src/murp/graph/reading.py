"""Files of triples and of names, in every form a dataset may have, as tables of strings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.delimited import first_row, read_columns
from murp.graph.parquet import read_table
from murp.graph.streams import COMPRESSIONS, split_endings
from murp.paths import not_a_file

COLUMNS = ("head", "relation", "tail")

FORMATS = (".txt", ".tsv", ".csv", ".parquet")
"""What a file of triples may be; each may be compressed."""

FORMATS_IN_WORDS = ".txt, .tsv, .csv or .parquet, each also with .gz, .xz or .zst"

COLUMN_WORDS = {
    "head": {"head", "h", "head_id", "head_entity", "subject", "subj", "s", "source", "src", "from"},
    "relation": {
        *("relation", "rel", "r", "relation_id", "relation_type", "relationship"),
        *("predicate", "pred", "p", "edge", "edge_type", "type", "label"),
    },
    "tail": {"tail", "t", "tail_id", "tail_entity", "object", "obj", "o", "target", "dst", "to"},
}


def find_file(folder: Path, stem: str, formats: Sequence[str] = FORMATS) -> Path | None:
    """The one file ``stem`` + format (+ compression) of ``folder``; None where there is none."""
    candidates = (folder / f"{stem}{form}{packed}" for form, packed in product(formats, COMPRESSIONS))
    found = [path for path in candidates if path.exists()]
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise DataError(f"{folder}: {names} could each be {stem!r}. Keep one of them.")
    for path in found:
        if (why := not_a_file(path)) is not None:
            raise DataError(f"{path} {why}.")
        if not path.resolve().is_relative_to(folder.resolve()):
            raise DataError(
                f"{path} is a symbolic link that leads out of its folder, to {path.resolve()}. "
                "Put the file itself there, or give the folder where it lies."
            )
    return found[0] if found else None


def read_triples(path: Path) -> pa.Table:
    """The rows of one file as large_string columns head, relation, tail, in the order of the file.

    Names are taken as they stand, blanks and all. A first row is a header only if its fields are three
    well-known column words, one for each role, in any order (``head,tail,relation``; ``s p o``; case does
    not matter). A Parquet file's columns are found by the same words, and otherwise are its first three;
    integers become their decimal strings.
    """
    form, _ = split_endings(path)
    if form not in FORMATS:
        raise DataError(f"{path}: not a format of triples that is known here. Known: {FORMATS_IN_WORDS}.")
    table = _read_parquet(path) if form == ".parquet" else _read_text(path, "," if form == ".csv" else "\t")
    if not len(table):
        raise DataError(f"{path}: holds no triples. Put rows of head, relation and tail into it.")
    return table


def read_names(path: Path) -> pa.Table:
    """Columns id, name and, where the tab-separated file has three columns or more, its last one as gloss.

    Empty names and glosses are null.
    """
    first = first_row(path, "\t")
    if first is None:
        raise DataError(f"{path}: holds no names. Put rows of id and name into it, or remove it.")
    if len(first) < 2:
        raise DataError(f"{path}: the first row has no tab. Rows are id, name and, if you like, a gloss.")
    columns = ["id", "name", *(f"column {i}" for i in range(3, len(first) + 1))]
    if len(columns) > 2:
        columns[-1] = "gloss"
    table = read_columns(path, columns, "\t", may_be_empty=columns[1:])
    kept = {"id": table["id"]}
    for column in ("name", "gloss"):
        if column in columns:
            text = table[column]
            kept[column] = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    return pa.table(kept)


def role_positions(words: Sequence[str]) -> tuple[int, int, int] | None:
    """Where ``words`` name the head, the relation and the tail; None unless each role is named once."""
    lowered = [word.strip().lower() for word in words]
    found = [[i for i, word in enumerate(lowered) if word in COLUMN_WORDS[role]] for role in COLUMNS]
    if any(len(places) != 1 for places in found):
        return None
    (head,), (relation,), (tail,) = found
    return head, relation, tail


def _read_text(path: Path, delimiter: str) -> pa.Table:
    first = first_row(path, delimiter)
    if first is None:
        raise DataError(f"{path}: is empty. Put rows of head, relation and tail into it.")
    header = role_positions(first) if len(first) == 3 else None
    columns = list(COLUMNS)
    for place, role in zip(header or (), COLUMNS, strict=False):
        columns[place] = role
    table = read_columns(path, columns, delimiter).select(list(COLUMNS))
    return table if header is None else table.slice(1)


def _read_parquet(path: Path) -> pa.Table:
    def choose(names: Sequence[str]) -> list[str]:
        if len(names) < 3:
            raise DataError(f"{path}: {len(names)} columns instead of 3 (head, relation, tail).")
        chosen = [names[i] for i in role_positions(names) or (0, 1, 2)]
        if len(set(chosen)) < 3:
            raise DataError(f"{path}: several columns have one name ({', '.join(chosen)}). Rename them.")
        return chosen

    table = read_table(path, choose)
    return pa.table({role: _as_strings(path, table, i) for i, role in enumerate(COLUMNS)})


def _as_strings(path: Path, table: pa.Table, i: int) -> pa.ChunkedArray:
    name, column = table.column_names[i], table.column(i)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(f"{path}: column {name!r} holds {kind}; ids are strings or integers.")
    strings = column.cast(pa.large_string())
    missing = pc.fill_null(pc.equal(strings, ""), True)
    if pc.any(missing).as_py():
        raise DataError(
            f"{path}, row {pc.index(missing, True).as_py() + 1}: column {name!r} is empty."
            " Fill it in or remove the row."
        )
    return strings
