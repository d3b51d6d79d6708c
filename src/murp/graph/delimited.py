"""Rows separated by tabs or commas into columns of strings, by a columnar reader.

Tab-separated files are not quoted: a ``"`` is an ordinary character. Comma-separated files are quoted
as RFC 4180 says. Line ends may be LF, CRLF or CR, the last one may be missing, a UTF-8 byte-order mark
and blank lines are passed over. Rows are walked one by one only to explain what is wrong with a file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from murp.errors import DataError
from murp.graph.streams import LONGEST_LINE, open_input, text_lines, too_long

_BLOCK_BYTES = LONGEST_LINE  # one row must fit into a block


def read_columns(path: Path, columns: Sequence[str], delimiter: str, *, may_be_empty: Sequence[str] = ()) -> pa.Table:
    """All rows of ``path`` as large_string ``columns``; a DataError names the line that does not fit."""
    try:
        table = _parsed(path, columns, delimiter)
    except pa.ArrowInvalid:
        if (fault := _fault(path, columns, delimiter, may_be_empty)) is not None:
            raise fault from None
        try:
            table = _parsed(path, columns, delimiter, skip_blanks=True)
        except pa.ArrowInvalid as error:
            raise DataError(f"{path}: cannot be read: {error}.") from error
    for column in columns:
        if column not in may_be_empty and pc.any(pc.equal(table[column], "")).as_py():
            fault = _fault(path, columns, delimiter, may_be_empty)
            raise fault or DataError(f"{path}: cannot be read: an empty {column}.")
    return table


def _parsed(path: Path, columns: Sequence[str], delimiter: str, *, skip_blanks: bool = False) -> pa.Table:
    """What the columnar reader makes of the file. It passes over empty lines; lines of blanks cost it a call into
    Python each, which moreover must not see what is not UTF-8: they are skipped when the first attempt has failed."""
    quoted = delimiter == ","
    with open_input(path) as stream:
        return pacsv.read_csv(
            stream,
            read_options=pacsv.ReadOptions(column_names=list(columns), block_size=_BLOCK_BYTES),
            parse_options=pacsv.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if quoted else False,
                newlines_in_values=quoted,
                invalid_row_handler=(lambda row: "skip" if _is_blank([row.text]) else "error") if skip_blanks else None,
            ),
            convert_options=pacsv.ConvertOptions(column_types={c: pa.large_string() for c in columns}),
        )


def first_row(path: Path, delimiter: str) -> list[str] | None:
    """The fields of the first row that is not blank; None where there is none."""
    for _, row in rows(path, delimiter):
        return row
    return None


def rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line a row begins on, its fields) for rows that are not blank, one by one; not UTF-8 is a DataError."""
    for number, row in _rows(path, delimiter):
        _check_encoding(path, number, row)
        yield number, row


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The same, where bytes that are not UTF-8 become surrogates."""
    if delimiter == ",":
        yield from _quoted_rows(path)
        return
    for number, line in enumerate(text_lines(path), 1):
        if not _is_blank([line]):
            yield number, line.removesuffix("\n").split(delimiter)


def _quoted_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    begin, length = 1, 0

    def lines() -> Iterator[str]:
        nonlocal length
        for line in text_lines(path, newline=""):
            length += len(line)
            if length > LONGEST_LINE:  # a row of many lines
                raise too_long(path, begin)
            yield line

    reader = csv.reader(lines())
    try:
        for row in reader:
            if not _is_blank(row):
                yield begin, row
            begin, length = reader.line_num + 1, 0
    except csv.Error as error:
        raise DataError(f"{path}, line {begin}: {error}. Is a quote left open there?") from error


def _is_blank(row: Sequence[str]) -> bool:
    """A line of nothing but blanks; a tab is no blank, it separates empty fields."""
    return not row or (len(row) == 1 and "\t" not in row[0] and not row[0].strip())


def _fault(path: Path, columns: Sequence[str], delimiter: str, may_be_empty: Sequence[str]) -> DataError | None:
    """The first fault of the file as an error to raise, found row by row; None where there is none."""
    width = len(columns)
    for number, row in rows(path, delimiter):
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
    return None


def _check_encoding(path: Path, number: int, row: Sequence[str]) -> None:
    try:
        "".join(row).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{path}, line {number}: not UTF-8: {_shown(row, ' ')}. Save the file in the encoding UTF-8."
        ) from None


def _shown(row: Sequence[str], delimiter: str) -> str:
    """The row as text fit for a message: control characters escaped, long ones cut."""
    text = repr(delimiter.join(row)[:200].encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"))
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
