"""Facts out of an Arrow table, whose columns have titles: Parquet, a data frame, the result of a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.findings import Finding, noticed
from murp.graph.reading.columns import COLUMNS, Columns, by_position, left_out, not_understood
from murp.graph.reading.facts import Facts


def choose(titles: Sequence[str], columns: Columns, where: str) -> tuple[int, int, int]:
    """The places of head, relation and tail."""
    if len(titles) < 3:
        raise DataError(f"{where}: {len(titles)} columns instead of 3 (head, relation, tail).")
    places = columns.numbers() or (0, 1, 2) if not columns.header else columns.find(titles, where)
    if places is None and by_position(titles):
        places = (0, 1, 2)
    if places is None:
        raise not_understood(where, titles, "(the titles of the columns) is not understood")
    if max(places) >= len(titles) or len(set(places)) < 3:
        raise DataError(f"{where}: has {len(titles)} columns, and not three different ones of {str(columns)!r}.")
    chosen = [titles[place] for place in places]
    if len(set(chosen)) < 3:
        raise DataError(f"{where}: several columns have one name ({', '.join(chosen)}). Rename them.")
    return places


def table_facts(table: pa.Table, columns: Columns, where: str, name: str) -> Facts:
    """The facts of a table; ``where`` it stands, and the ``name`` of what it was read from, for messages."""
    titles = table.column_names
    places = choose(titles, columns, where)
    triples = pa.table({role: as_strings(table, i, where) for role, i in zip(COLUMNS, places, strict=True)})
    return Facts(triples, row_of(where), findings=further(name, left_out(titles, places)))


def further(name: str, titles: Sequence[str]) -> list[Finding]:
    """That columns of these titles were left out."""
    named = ", ".join(title or "(no title)" for title in titles[:10]) + (", …" if len(titles) > 10 else "")
    return noticed("further_columns", name, len(titles), "further column{s} left out", [named])


def row_of(where: str) -> Callable[[int], str]:
    """Where a row stands that has no line."""
    return lambda row: f"{where}, row {row + 1}"


def as_strings(table: pa.Table, i: int, where: str, first: int = 0) -> pa.ChunkedArray:
    """Column ``i`` as strings; whole numbers become their decimal digits, other kinds are an error.

    ``first``: the number of the table's first row, where it is a piece of a file.
    """
    name, column = table.column_names[i], table.column(i)
    if pa.types.is_dictionary(column.type):
        spelled = [chunk.dictionary.cast(_text(chunk.dictionary.type)).take(chunk.indices) for chunk in column.chunks]
        column = pa.chunked_array(spelled, _text(column.type.value_type))
    kind = column.type
    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if not any(test(kind) for test in kinds):
        advice = " Fill in what is missing and make them whole numbers." if pa.types.is_floating(kind) else ""
        raise DataError(f"{where}: column {name!r} holds {kind}; ids are strings or integers.{advice}")
    strings = column.cast(pa.large_string())
    missing = pc.fill_null(pc.equal(strings, ""), True)
    if pc.any(missing).as_py():
        row = first + pc.index(missing, True).as_py() + 1
        raise DataError(f"{where}, row {row}: column {name!r} is empty. Fill it in or remove the row.")
    return strings


def _text(kind: pa.DataType) -> pa.DataType:
    """Large strings in place of views of strings, which not every function takes."""
    return pa.large_string() if pa.types.is_string_view(kind) else kind
