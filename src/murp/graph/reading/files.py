"""Files of triples and of names, in every form a dataset may have, as tables of strings."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.formats import FORMATS, read_facts
from murp.graph.names.tidy import tidy_array
from murp.graph.reading.columns import COLUMNS as COLUMNS
from murp.graph.reading.columns import EACH_BY_TITLE, Columns
from murp.graph.reading.delimited import first_row, read_columns
from murp.graph.reading.streams import COMPRESSIONS
from murp.paths import not_a_file


def find_file(folder: Path, stem: str, formats: Iterable[str] = FORMATS) -> Path | None:
    """The one file ``stem`` + format (+ compression) of ``folder``; None if there is none."""
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


def read_triples(path: Path, columns: Columns = EACH_BY_TITLE) -> pa.Table:
    """The rows of one file as large_string columns head, relation, tail, in its order, names as they stand."""
    return read_facts(path, columns).triples


def read_names(path: Path) -> pa.Table:
    """Columns id, name and, where the tab-separated file has three columns or more, its last one as gloss.

    Ids and names follow the rule of :mod:`murp.graph.names.tidy`. Empty names and glosses are null.
    """
    opening = first_row(path, "\t")
    if opening is None:
        raise DataError(f"{path}: holds no names. Put rows of id and name into it, or remove it.")
    _, first = opening
    if len(first) < 2:
        raise DataError(f"{path}: the first row has no tab. Rows are id, name and, if you like, a gloss.")
    columns = ["id", "name", *(f"column {i}" for i in range(3, len(first) + 1))]
    if len(columns) > 2:
        columns[-1] = "gloss"
    table = read_columns(path, columns, "\t", may_be_empty=columns[1:])
    kept = {"id": tidy_array(table["id"].combine_chunks())}
    for column in ("name", "gloss"):
        if column in columns:
            text = tidy_array(table[column].combine_chunks())
            kept[column] = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    return pa.table(kept)
