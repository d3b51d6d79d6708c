"""Read Parquet files, with limits.

A repeated value takes almost no space in a Parquet file, so a few kilobytes can expand to more than memory can hold. So
rows are counted before they are read, and texts are measured before dictionaries are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from murp.errors import DataError
from murp.graph.reading.streams import most_unpacked, open_input, split_endings, too_much_unpacked

ROWS_ALWAYS = 1 << 20
ROWS_A_BYTE = 64  # the most that real columns were ever packed to is a tenth of it

Choose = Callable[[Sequence[str]], Sequence[str]]


def read_table(path: Path, choose: Choose = lambda names: names) -> pa.Table:
    """The columns of ``path`` that ``choose`` picks by name; dictionaries are decoded."""
    try:
        with open_input(path) as stream:
            # Parquet is read from its end, which a decompressor cannot seek to.
            source = pa.BufferReader(stream.read()) if split_endings(path)[1] else stream
            return _read(path, source, choose)
    except (pa.ArrowException, ValueError, MemoryError) as error:
        raise DataError(f"{path}: cannot be read as Parquet: {error}. Get or write it again.") from error


def _read(path: Path, source: pa.NativeFile, choose: Choose) -> pa.Table:
    size = source.size()
    schema = pq.ParquetFile(source).schema_arrow
    texts = [field.name for field in schema if _is_text(field.type)]
    file = pq.ParquetFile(source, read_dictionary=texts)
    if file.metadata.num_rows > max(ROWS_ALWAYS, ROWS_A_BYTE * size):
        raise DataError(
            f"{path}: claims to have {file.metadata.num_rows:,} rows in {size:,} bytes, which is not plausible. Get or "
            "write it again."
        )
    table = file.read(columns=list(choose(schema.names)))
    table.validate(full=True)  # texts must be UTF-8, and a damaged file may break what other functions take for granted
    if sum(map(_spelled_out, table.columns)) > most_unpacked(size):
        raise too_much_unpacked(path, most_unpacked(size))
    return pa.table(
        [
            column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for column in table.columns
        ],
        names=table.column_names,
        metadata=schema.metadata,
    )


def _is_text(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary))


def _spelled_out(column: pa.ChunkedArray) -> int:
    """Bytes of the texts of a column of dictionaries; 0 for others."""
    if not pa.types.is_dictionary(column.type) or not _is_text(column.type.value_type):
        return 0
    lengths = (pc.binary_length(chunk.dictionary).take(chunk.indices) for chunk in column.chunks)
    return sum(pc.sum(pc.cast(length, pa.int64())).as_py() or 0 for length in lengths)
