"""Tables written block by block as Parquet, CSV or JSON lines: the whole file, or none."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from murp.errors import MurpError
from murp.files import replacing

FORMATS_IN_WORDS = ".parquet, .csv or .jsonl"


def check_output(path: Path, *, force: bool = False) -> None:
    """Refuse, before any work is done, what :func:`writing` could not write."""
    if path.suffix.lower() not in (".parquet", ".csv", ".jsonl"):
        raise MurpError(f"{path}: the name must end in {FORMATS_IN_WORDS}, which says the format.")
    check_place(path, force=force)


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a file that exists, unless it may be replaced, and one that could not be made."""
    if path.is_dir():
        raise MurpError(f"{path} is a folder. Name a file in it.")
    if path.exists() and not force:
        raise MurpError(f"{path} exists already. Choose another --out, or replace it with --force.")
    if not path.parent.is_dir():
        raise MurpError(f"{path}: there is no folder {path.parent}. Make it first.")


@contextlib.contextmanager
def writing(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Yield what takes tables of ``schema``; ``path`` appears when the block ends, and not at all if it raises."""
    form = path.suffix.lower()
    try:
        with replacing(path) as part:
            if form == ".parquet":
                with pq.ParquetWriter(part, schema, compression="zstd") as parquet:
                    yield parquet.write_table
            elif form == ".csv":
                with pacsv.CSVWriter(part, schema) as csv:
                    yield csv.write_table
            else:
                with part.open("wb") as file:
                    yield lambda table: _append(file, json_lines(table))
    except OSError as error:
        raise MurpError(f"{path} cannot be written: {error}. Nothing was kept.") from error


def json_lines(table: pa.Table) -> bytes:
    """The rows as JSON objects, a line each, in UTF-8. Columns are strings and finite numbers, either may be null."""
    pieces: list[pa.Array | pa.Scalar] = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        pieces += [_text(f"{', ' if pieces else '{'}{json.dumps(name)}: "), _json_values(column)]
    lines = pc.binary_join_element_wise(*pieces, _text("}\n"), _text(""))
    # The joined strings lie one after the other in one buffer, which is the file's content.
    return bytes(lines.buffers()[2]) if len(lines) else b""


def _json_values(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    if pa.types.is_large_string(values.type):
        coded = values.dictionary_encode()
        written = [json.dumps(text, ensure_ascii=False) for text in coded.dictionary.to_pylist()]
        values = pa.array(written, pa.large_string()).take(coded.indices)
    return pc.fill_null(values.cast(pa.large_string()), "null")


def _append(file: BinaryIO, content: bytes) -> None:
    file.write(content)


def _text(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
