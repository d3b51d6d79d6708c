"""Write a graph as files for other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from murp.errors import DataError
from murp.files import new_folder
from murp.graph.formats.text import no_fact
from murp.graph.indexing import table_of
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph
from murp.graph.names.vocabulary import Vocabulary
from murp.graph.reading.streams import COMPRESSIONS, open_output
from murp.graph.storage import save_mapped

_ROWS_AT_ONCE = 1_000_000
_TAB, _NEWLINE, _NOTHING = (pa.scalar(text, pa.large_string()) for text in ("\t", "\n", ""))


def convert(graph: KnowledgeGraph, out: Path, format: str = "tsv") -> None:
    """Write train, valid and test into the new folder ``out``, and names where known (``entity_names.tsv``).

    ``format`` is tsv, csv or parquet, optionally compressed: ``tsv.gz``, ``csv.zst``. Csv and Parquet have a header;
    tsv has none, as usual, and cannot contain tabs or line ends. The files load as the same triples in the same order.
    ``graph`` is murp's own format, names and numbers, which is mapped into memory.
    """
    check_format(format)
    if format.lower() == "graph":
        save_mapped(graph, out)
        return
    form, dot, packed = format.lower().partition(".")
    with new_folder(out, DataError) as part:
        for split in SPLITS:
            table = table_of(graph, graph.split(split))
            name = f"{split}.{form}{dot}{packed}"
            with open_output(part / name) as stream:
                if form == "parquet":
                    pq.write_table(table, stream, compression="zstd")
                elif form == "csv":
                    pacsv.write_csv(table, stream)
                else:
                    _refuse_header(name, table)
                    _write_tsv(name, table, stream)
        for vocabulary in (graph.entities, graph.relations):
            _write_names(part / f"{vocabulary.kind}_names.tsv", vocabulary)


def check_format(format: str) -> None:
    """Raise if :func:`convert` does not know the format."""
    form, dot, packed = format.lower().partition(".")
    if format.lower() != "graph" and (form not in ("tsv", "csv", "parquet") or dot + packed not in COMPRESSIONS):
        raise DataError(
            f"unknown format {format!r}. Known: tsv, csv and parquet, each also with .gz, .xz or .zst; and graph."
        )


def _write_names(path: Path, vocabulary: Vocabulary) -> None:
    if vocabulary.names is None:
        return
    table = vocabulary.table()
    known = pc.is_valid(table["name"])
    if "gloss" in table.column_names:
        known = pc.or_(known, pc.is_valid(table["gloss"]))
    named = table.filter(known)
    filled = pa.table({column: pc.fill_null(named[column], "") for column in named.column_names})
    if len(filled):
        with open_output(path) as stream:
            _write_tsv(path.name, filled, stream)


def _write_tsv(name: str, table: pa.Table, stream: Any) -> None:
    for begin in range(0, len(table), _ROWS_AT_ONCE):
        columns = [column.combine_chunks() for column in table.slice(begin, _ROWS_AT_ONCE).columns]
        for column in columns:
            unfit = pc.index(pc.match_substring_regex(column, "[\t\r\n]"), True).as_py()
            if unfit >= 0:
                raise DataError(
                    f"{name}: {column[unfit].as_py()!r} holds a tab or a line end, which tab-separated files"
                    " cannot. Convert to csv or parquet, or rename it."
                )
        # Arrow's csv writer cannot leave quotation marks alone; the joined strings lie one after the other
        # in one buffer, which is the file's content.
        lines = pc.binary_join_element_wise(pc.binary_join_element_wise(*columns, _TAB), _NOTHING, _NEWLINE)
        stream.write(lines.buffers()[2])


def _refuse_header(name: str, table: pa.Table) -> None:
    """Raise if the first fact would be read back as a header, such as (head, relation, tail)."""
    if len(table) and no_fact(table) is not None:
        raise DataError(f"{name}: the first row looks like a header. Convert to csv or parquet.")
