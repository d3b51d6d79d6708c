"""Read rows separated by tabs or commas into columns of strings, with a columnar reader.

Tab-separated files are not quoted: a ``"`` is an ordinary character. Comma-separated files are quoted as RFC 4180 says.
Line ends may be LF, CRLF or CR, the last one may be missing, a UTF-8 byte-order mark and blank lines are ignored. So
are comments: lines that begin with # and whose number of fields differs from the other lines. Rows are read one by one
only to explain what is wrong with a file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from murp.errors import DataError
from murp.graph.reading.streams import LONGEST_LINE, open_input, text_lines, too_long

_BLOCK_BYTES = LONGEST_LINE  # one row must fit into a block
_MOST_COMMENTS = 1000  # before the first row


def read_columns(
    path: Path,
    columns: Sequence[str],
    delimiter: str,
    *,
    may_be_empty: Sequence[str] = (),
    kept: Sequence[str] | None = None,
    comments: list[str] | None = None,
) -> pa.Table:
    """All rows of ``path`` as large_string ``columns``, of which only those ``kept`` are made, if that is given.

    A DataError names the line that does not fit. ``comments``, if given, collects the ignored comments.
    """
    kept = columns if kept is None else kept

    def parsed(passed_over: list[str] | None = None) -> pa.Table:
        with open_input(path) as stream:
            return _parsed(stream, columns, delimiter, kept, passed_over=passed_over)

    try:
        table = parsed()
    except pa.ArrowInvalid:
        if (fault := _fault(path, columns, delimiter, may_be_empty)) is not None:
            raise fault from None
        try:
            table = parsed([] if comments is None else comments)
        except pa.ArrowInvalid as error:
            raise DataError(f"{path}: cannot be read: {error}.") from error
    return _without_empty(path, table, columns, delimiter, may_be_empty)


def read_piece(
    path: Path,
    piece: bytes,
    columns: Sequence[str],
    delimiter: str,
    *,
    may_be_empty: Sequence[str],
    kept: Sequence[str],
    comments: list[str],
) -> pa.Table:
    """The rows of a ``piece`` of ``path``, which begins and ends with whole rows; as :func:`read_columns`."""

    def parsed(passed_over: list[str] | None = None) -> pa.Table:
        return _parsed(pa.BufferReader(piece), columns, delimiter, kept, passed_over=passed_over)

    try:
        table = parsed()
    except pa.ArrowInvalid:
        found: list[str] = []
        try:
            table = parsed(found)
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            fault = _fault(path, columns, delimiter, may_be_empty)
            raise fault or DataError(f"{path}: cannot be read: {error}.") from None
        comments.extend(found)
    return _without_empty(path, table, columns, delimiter, may_be_empty)


def _without_empty(
    path: Path, table: pa.Table, columns: Sequence[str], delimiter: str, may_be_empty: Sequence[str]
) -> pa.Table:
    """The table, unless a field that must not be is empty: then an error says where."""
    for column in table.column_names:
        if column not in may_be_empty and pc.any(pc.equal(table[column], "")).as_py():
            fault = _fault(path, columns, delimiter, may_be_empty)
            raise fault or DataError(f"{path}: cannot be read: an empty {column}.")
    return table


def _parsed(
    stream: Any, columns: Sequence[str], delimiter: str, kept: Sequence[str], *, passed_over: list[str] | None = None
) -> pa.Table:
    """What the columnar reader makes of the stream. It passes over empty lines; lines of blanks and comments cost it a
    call into Python each, which moreover must not see what is not UTF-8: they are passed over when the first attempt
    has failed."""
    quoted = delimiter == ","

    def unfit(row: pacsv.InvalidRow) -> str:
        if _is_comment([row.text]) and passed_over is not None:
            passed_over.append(row.text)
            return "skip"
        return "skip" if _is_blank([row.text]) else "error"

    return pacsv.read_csv(
        stream,
        read_options=pacsv.ReadOptions(column_names=list(columns), block_size=_BLOCK_BYTES),
        parse_options=pacsv.ParseOptions(
            delimiter=delimiter,
            quote_char='"' if quoted else False,
            newlines_in_values=quoted,
            invalid_row_handler=None if passed_over is None else unfit,
        ),
        convert_options=pacsv.ConvertOptions(
            column_types={c: pa.large_string() for c in kept}, include_columns=list(kept)
        ),
    )


def first_row(path: Path, delimiter: str) -> tuple[int, list[str]] | None:
    """(line, fields) of the first row that is neither blank nor a comment; None if there is none.

    How many fields a row has is told by the first one that does not begin with #.
    """
    marked: list[tuple[int, list[str]]] = []
    for number, row in rows(path, delimiter):
        if not _is_comment(row):
            fitting = [one for one in marked if len(one[1]) == len(row)]
            return fitting[0] if fitting else (number, row)
        marked.append((number, row))
        if len(marked) == _MOST_COMMENTS:
            break
    return marked[0] if marked else None


def rows(path: Path, delimiter: str, width: int | None = None) -> Iterator[tuple[int, list[str]]]:
    """(line a row begins on, its fields) for rows that are not blank, one by one; not UTF-8 is a DataError.

    Where a ``width`` is given, comments are passed over.
    """
    for number, row in _rows(path, delimiter):
        _check_encoding(path, number, row)
        if width is None or len(row) == width or not _is_comment(row):
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


def _is_comment(row: Sequence[str]) -> bool:
    return row[0].lstrip().startswith("#")


def _fault(path: Path, columns: Sequence[str], delimiter: str, may_be_empty: Sequence[str]) -> DataError | None:
    """The first fault of the file as an error to raise, found row by row; None if there is none."""
    width = len(columns)
    for number, row in rows(path, delimiter, width):
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
        ";": f"semicolons: put {separator} instead, or save it with {separator}",
        " ": f"blanks: put {separator} instead",
    }.items():
        if character in row[0]:
            return f" Fields must be separated by {separator}; these seem to be separated by {words}."
    return f" Fields must be separated by {separator}."
