"""Check a file of names: ids that are named twice, and ids that the graph does not have."""

from __future__ import annotations

import itertools
import reprlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.findings import Finding
from murp.graph.names.vocabulary import PLURALS, Vocabulary
from murp.graph.reading.delimited import first_row, rows


def check_names(file: Path, names: pa.Table, vocabulary: Vocabulary) -> list[Finding]:
    """A finding about the ids of ``file`` that ``vocabulary`` does not have; an id with two rows is a DataError.

    With two names for an id, it is unclear which is right. A file with more ids than the graph is usual: it was made
    for a larger graph.
    """
    ids = names["id"].combine_chunks()
    codes = ids.dictionary_encode().indices.to_numpy()  # numbered in order of first appearance
    _, firsts = np.unique(codes, return_index=True)
    again = np.setdiff1d(np.arange(len(codes)), firsts)
    if len(again):
        second = int(again[0])
        first = _line(file, int(firsts[codes[second]]))
        raise DataError(
            f"{file}, line {_line(file, second)}: {_shown(ids, second)} has a name in line {first} already "
            f"({_rows(len(again))} too many in all). Keep one row for each id."
        )
    unknown = np.flatnonzero(~pc.is_in(ids, value_set=vocabulary.ids).to_numpy(False))
    if not len(unknown):
        return []
    first = int(unknown[0])
    text = (
        f"{len(unknown):,} of {_rows(len(ids))} name no {vocabulary.kind} of the graph, the first in line "
        f"{_line(file, first)}: {_shown(ids, first)}. They are left out; the graph has {len(vocabulary):,} "
        f"{PLURALS[vocabulary.kind]}"
    )
    return [Finding("names_of_nothing", file.name, len(unknown), text)]


def _line(file: Path, row: int) -> int:
    """The line on which a row of the file begins."""
    first = first_row(file, "\t")
    return next(itertools.islice(rows(file, "\t", None if first is None else len(first[1])), row, None))[0]


def _shown(ids: pa.Array, row: int) -> str:
    return reprlib.repr(ids[row].as_py())


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"
