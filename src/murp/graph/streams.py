"""Files opened for reading and writing, compressed or not."""

from __future__ import annotations

import contextlib
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from murp.errors import DataError

COMPRESSIONS = {"": None, ".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
"""Endings a file name may have after its format, and what they mean."""


def split_endings(path: Path) -> tuple[str, str]:
    """Format and compression endings in lower case: ``train.tsv.gz`` gives (".tsv", ".gz")."""
    compression = path.suffix.lower()
    if compression not in COMPRESSIONS:
        return compression, ""
    return (path.with_suffix("").suffix.lower(), compression) if compression else ("", "")


@contextlib.contextmanager
def open_input(path: Path) -> Iterator[Any]:
    """A binary stream of the decompressed content; what disk or decompressor object to is a DataError."""
    compression = COMPRESSIONS[split_endings(path)[1]]
    try:
        if compression == "xz":
            with lzma.open(path) as file:
                yield file
        elif compression:
            with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, compression) as stream:
                yield stream
        else:
            with pa.OSFile(str(path)) as stream:
                yield stream
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. Check the path.") from error
    except (OSError, EOFError, lzma.LZMAError) as error:
        damaged = " The file may be damaged or incomplete: get it again." if compression else ""
        raise DataError(f"{path}: cannot be read: {error}.{damaged}") from error


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[Any]:
    """A binary stream that compresses as the file's ending says."""
    compression = COMPRESSIONS[split_endings(path)[1]]
    if compression == "xz":
        with lzma.open(path, "wb") as file:
            yield file
    elif compression:
        with pa.OSFile(str(path), "wb") as raw, pa.CompressedOutputStream(raw, compression) as stream:
            yield stream
    else:
        with pa.OSFile(str(path), "wb") as stream:
            yield stream
