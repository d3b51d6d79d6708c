"""Files of triples in pieces: tables of strings that follow one another, from any place on where a piece began.

Text is cut at line ends, so that a piece is a number of bytes; Parquet is read by row groups. The next pieces are made
on another thread while one is worked on.
"""

from __future__ import annotations

import queue
import threading
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from murp.errors import DataError
from murp.graph.findings import Finding
from murp.graph.formats import text
from murp.graph.reading.columns import COLUMNS, Columns, left_out
from murp.graph.reading.delimited import read_piece
from murp.graph.reading.parquet import ROWS_A_BYTE, ROWS_ALWAYS
from murp.graph.reading.streams import LONGEST_LINE, open_input, split_endings, too_long
from murp.graph.reading.tables import as_strings, choose, further

PIECE = 32 << 20  # bytes of text
BATCH = 1 << 20  # rows of Parquet
AHEAD = 2  # pieces that wait to be worked on


class NotInPieces(DataError):
    """A file that is read whole or not at all."""


class Piece(NamedTuple):
    """Rows as large strings; where to go on after them, None where that cannot be; what part of the file is read.

    ``comments``: lines of it that were passed over.
    """

    facts: pa.Table
    end: int | None
    done: float
    comments: Sequence[str] = ()


class Text:
    """Tab- or comma-separated rows; a place is a number of bytes."""

    def __init__(self, path: Path, columns: Columns) -> None:
        plan = text.plan(path, columns)
        if plan is None:
            raise NotInPieces(f"{path}: an export of APOC is read whole.")
        self.path, self.plan, self.comments = path, plan, list[str]()
        self.doubtful = not plan.has_header and columns.header

    def pieces(self, start: int, row: int) -> Iterator[Piece]:
        """From byte ``start`` on, where row number ``row`` begins."""
        opening = start == 0
        for piece, end, done in self._bytes(start):
            if piece.strip():
                comments: list[str] = []
                # The columnar reader leaves out a byte-order mark, which within a file is a part of a name.
                marked = end > len(piece) and piece.startswith(BOM_UTF8)
                table = read_piece(
                    self.path,
                    BOM_UTF8 + piece if marked else piece,
                    self.plan.titles,
                    self.plan.delimiter,
                    may_be_empty=self.plan.unused,
                    kept=COLUMNS,
                    comments=comments,
                )
                if opening and len(table):
                    table, opening = self.plan.facts(table), False
                # Whoever goes on must know whether the header is still to come.
                yield Piece(table, None if opening else end, done, comments)

    def findings(self) -> list[Finding]:
        """What was left out."""
        return self.plan.told(self.comments)

    def place(self, row: int) -> str:
        """Where a row stands."""
        return self.plan.place_of(row)

    def _bytes(self, start: int) -> Iterator[tuple[bytes, int, float]]:
        """Whole lines, where they end, and what part of the file that is."""
        packed, size = bool(split_endings(self.path)[1]), max(1, self.path.stat().st_size)
        with open_input(self.path) as stream:
            passed = 0
            while passed < start and (part := stream.read(min(PIECE, start - passed))):  # a decompressor cannot seek
                passed += len(part)
            kept = b""
            while more := stream.read(PIECE):
                kept += more
                cut = _last_row_end(kept, quoted=self.plan.delimiter == ",", opening=start == 0)
                if cut:
                    start += cut
                    yield kept[:cut], start, (stream.taken() if packed else start) / size
                    kept = kept[cut:]
                elif len(kept) > LONGEST_LINE + PIECE:
                    raise too_long(self.path, 1)
            if kept:
                yield kept, start + len(kept), 1.0


def _last_row_end(data: bytes, *, quoted: bool, opening: bool) -> int:
    """Where the last whole row ends; 0 if there is none. A line end within quotes is none.

    ``opening``: the data are the beginning of their file.
    """
    if quoted and b'"' in data:
        from murp.kernels.numba_rows import last_row_end  # a compiler, which few files need

        begin = len(BOM_UTF8) if opening and data.startswith(BOM_UTF8) else 0
        return int(last_row_end(np.frombuffer(data, np.uint8), begin))
    line_end = b"\n" if b"\n" in data else b"\r"
    return data.rfind(line_end, 0, len(data) - (line_end == b"\r")) + 1  # a CR at the end may be half of a CRLF


class Parquet:
    """Row groups; a place is a number of them."""

    doubtful = False

    def __init__(self, path: Path, columns: Columns) -> None:
        if split_endings(path)[1]:
            raise NotInPieces(f"{path}: a Parquet file that was packed once more is read whole.")
        self.path = path
        try:
            self._file = pq.ParquetFile(path)
        except (pa.ArrowException, ValueError, OSError) as error:
            raise self._unreadable(error) from error
        rows, size = self._file.metadata.num_rows, path.stat().st_size
        if rows > max(ROWS_ALWAYS, ROWS_A_BYTE * size):
            raise DataError(
                f"{path}: claims to have {rows:,} rows in {size:,} bytes, which is not plausible. Get or write it "
                "again."
            )
        titles = self._file.schema_arrow.names
        places = choose(titles, columns, str(path))
        self._chosen = [titles[place] for place in places]
        self._left_out = left_out(titles, places)

    def pieces(self, start: int, row: int) -> Iterator[Piece]:
        """From row group ``start`` on, where row number ``row`` begins."""
        groups = self._file.metadata.num_row_groups
        try:
            for group in range(start, groups):
                last = self._file.metadata.row_group(group).num_rows
                for batch in self._file.iter_batches(BATCH, row_groups=[group], columns=self._chosen):
                    table = pa.Table.from_batches([batch]).select(self._chosen)
                    table.validate(full=True)
                    columns = [as_strings(table, i, str(self.path), row) for i in range(3)]
                    row, last = row + len(table), last - len(table)
                    end = None if last else group + 1
                    yield Piece(pa.table(columns, names=COLUMNS), end, (group + 1) / groups)
        except (pa.ArrowException, ValueError, MemoryError) as error:
            raise self._unreadable(error) from error

    def findings(self) -> list[Finding]:
        """What was left out."""
        return further(self.path.name, self._left_out)

    def place(self, row: int) -> str:
        """Where a row stands."""
        return f"{self.path}, row {row + 1}"

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: cannot be read as Parquet: {error}. Get or write it again.")


def opened(path: Path, columns: Columns) -> Text | Parquet:
    """The file at ``path``, to be read in pieces."""
    form = split_endings(path)[0]
    if form not in (".txt", ".tsv", ".csv", ".parquet"):
        raise NotInPieces(f"{path}: a file of this format is read whole.")
    return Parquet(path, columns) if form == ".parquet" else Text(path, columns)


def ahead(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The same, made on another thread while they are worked on."""
    waiting: queue.Queue[Any] = queue.Queue(AHEAD)
    stop = threading.Event()

    def put(item: object) -> None:
        while not stop.is_set():
            try:
                return waiting.put(item, timeout=0.1)
            except queue.Full:
                continue

    def make() -> None:
        try:
            for piece in pieces:
                put(piece)
                if stop.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    maker = threading.Thread(target=make, name="murp-reading", daemon=True)
    maker.start()
    try:
        while (item := waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        maker.join()
