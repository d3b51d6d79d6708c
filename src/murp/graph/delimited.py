"""Rows separated by tabs or commas into columns of strings, by a columnar reader.

Tab-separated files are not quoted: a ``"`` is an ordinary character. Comma-separated files are quoted
as RFC 4180 says. Line ends may be LF, CRLF or CR, the last one may be missing, a UTF-8 byte-order mark
and blank lines are passed over. Rows are walked one by one only to explain what is wrong with a file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from murp.errors import DataError
from murp.graph.streams import open_input

_BLOCK_BYTES = 8 << 20  # one row must fit into a block


def read_columns(path: Path, columns: Sequence[str], delimiter: str, *, may_be_empty: Sequence[str] = ()) -> pa.Table:
    """All rows of ``path`` as large_string ``columns``; a DataError names the line that does not fit."""
    quoted = delimiter == ","
    try:
        with open_input(path) as stream:
            table = pacsv.read_csv(
                stream,
                read_options=pacsv.ReadOptions(column_names=list(columns), block_size=_BLOCK_BYTES),
                parse_options=pacsv.ParseOptions(
                    delimiter=delimiter,
                    quote_char='"' if quoted else False,
                    newlines_in_values=quoted,
                    invalid_row_handler=lambda row: "skip" if _is_blank([row.text]) else "error",
                ),
                convert_options=pacsv.ConvertOptions(column_types={c: pa.large_string() for c in columns}),
            )
    except pa.ArrowInvalid as error:
        raise _explain(path, columns, delimiter, may_be_empty, str(error)) from error
    for column in columns:
        if column not in may_be_empty and pc.any(pc.equal(table[column], "")).as_py():
            raise _explain(path, columns, delimiter, may_be_empty, f"an empty {column}")
    return table


def first_row(path: Path, delimiter: str) -> list[str] | None:
    """The fields of the first row that is not blank; None where there is none."""
    for number, row in _rows(path, delimiter):
        _check_encoding(path, number, row)
        return row
    return None


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line a row begins on, its fields) for rows that are not blank; bytes not UTF-8 become surrogates."""
    quoted = delimiter == ","
    with (
        open_input(path) as stream,
        io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="" if quoted else None) as text,
    ):
        if not quoted:
            for number, line in enumerate(text, 1):
                if not _is_blank([line]):
                    yield number, line.removesuffix("\n").split(delimiter)
            return
        reader = csv.reader(text)
        begin = 1
        try:
            for row in reader:
                if not _is_blank(row):
                    yield begin, row
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(f"{path}, line {begin}: {error}. Is a quote left open there?") from error


def _is_blank(row: Sequence[str]) -> bool:
    """A line of nothing but blanks; a tab is no blank, it separates empty fields."""
    return not row or (len(row) == 1 and "\t" not in row[0] and not row[0].strip())


def _explain(
    path: Path, columns: Sequence[str], delimiter: str, may_be_empty: Sequence[str], otherwise: str
) -> DataError:
    """The first fault of the file as an error to raise; what the columnar reader said where none is found."""
    width = len(columns)
    for number, row in _rows(path, delimiter):
        _check_encoding(path, number, row)
        where, shown = f"{path}, line {number}", _shown(row, delimiter)
        if len(row) != width:
            fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
            return DataError(
                f"{where}: {fields} instead of {width} ({', '.join(columns)}): {shown}."
                f"{_separator_hint(row, delimiter)}"
            )
        for column, field in zip(columns, row, strict=True):
            if not field and column not in may_be_empty:
                return DataError(f"{where}: the {column} is empty: {shown}. Fill it in or remove the row.")
    return DataError(f"{path}: cannot be read: {otherwise}.")


def _check_encoding(path: Path, number: int, row: Sequence[str]) -> None:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{path}, line {number}: not UTF-8: {_shown(row, ' ')}. Save the file in the encoding UTF-8."
        ) from None


def _shown(row: Sequence[str], delimiter: str) -> str:
    """The row as text fit for a message: control characters escaped, long ones cut."""
    text = repr(delimiter.join(row).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
    return text if len(text) <= 120 else text[:119] + "…"


def _separator_hint(row: Sequence[str], delimiter: str) -> str:
    separator = "tabs" if delimiter == "\t" else "commas"
    if len(row) > 1:
        return f" Fields are separated by {separator}."
    if delimiter in row[0]:
        return " Is a quote left open there?"
    for character, words in {
        "\t": "tabs: name it .tsv",
        ",": "commas: name it .csv",
        ";": f"semicolons: put {separator} instead",
        " ": f"blanks: put {separator} instead",
    }.items():
        if character in row[0]:
            return f" Fields must be separated by {separator}; these seem to be separated by {words}."
    return f" Fields must be separated by {separator}."
