"""Files opened for reading and writing, compressed or not."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from murp.errors import DataError
from murp.paths import not_a_file

try:
    import lzma
except ImportError:  # a Python without it
    lzma = None  # type: ignore[assignment]

# A few kilobytes can unpack to more than any memory holds. Facts as text shrink to a fifth or a fiftieth.
ALWAYS_UNPACKED = 64 << 20
MOST_TIMES = 200
_PIECE = 1 << 18
LONGEST_LINE = 8 << 20  # in characters

COMPRESSIONS = {"": None, ".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
"""Endings a file name may have after its format, and what they mean."""


def split_endings(path: Path) -> tuple[str, str]:
    """Format and compression endings in lower case: ``train.tsv.gz`` gives (".tsv", ".gz")."""
    compression = path.suffix.lower()
    if compression not in COMPRESSIONS:
        return compression, ""
    return (path.with_suffix("").suffix.lower(), compression) if compression else ("", "")


_XZ_FAULTS = () if lzma is None else (lzma.LZMAError,)


def _xz(path: Path, file: Any, mode: Literal["rb", "wb"]) -> Any:
    if lzma is None:
        raise DataError(
            f"{path}: this Python was built without the module lzma, which .xz needs. Use another Python, or pack the "
            "file as .gz or .zst, or not at all."
        )
    return lzma.open(file, mode)


@contextlib.contextmanager
def open_input(path: Path) -> Iterator[Any]:
    """A binary stream of the decompressed content; what disk or decompressor object to is a DataError."""
    if (why := not_a_file(path)) is not None:
        raise DataError(f"{path} {why}.")
    compression = COMPRESSIONS[split_endings(path)[1]]
    try:
        if compression == "xz":
            with path.open("rb") as raw, _xz(path, raw, "rb") as file:
                yield _Unpacked(path, file, raw)
        elif compression:
            with pa.OSFile(str(path)) as raw, pa.CompressedInputStream(raw, compression) as stream:
                yield _Unpacked(path, stream, raw)
        else:
            with pa.OSFile(str(path)) as stream:
                yield stream
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. Check the path.") from error
    except (OSError, EOFError, *_XZ_FAULTS) as error:
        damaged = " The file may be damaged or incomplete: get it again." if compression else ""
        raise DataError(f"{path}: cannot be read: {error}.{damaged}") from error


class Begun:
    """A stream whose ``begin`` was read already, to be read as if it had not been."""

    def __init__(self, begin: bytes, stream: Any) -> None:
        self.begin, self.stream = io.BytesIO(begin), stream

    def read(self, size: int = -1) -> bytes:
        return self.begin.read(size) or bytes(self.stream.read(size))


class _Unpacked(io.RawIOBase):
    """Passes on what a decompressor gives, up to what a file of that size may honestly hold."""

    def __init__(self, path: Path, stream: Any, raw: Any) -> None:
        self.path, self.stream, self.raw = path, stream, raw
        self.left = self.most = most_unpacked(path.stat().st_size)

    def readable(self) -> bool:
        return True

    def taken(self) -> int:
        """How many bytes of the compressed file have been read."""
        taken: int = self.raw.tell()
        return taken

    def read(self, size: int = -1) -> bytes:
        # In pieces: the columnar reader asks for megabytes, and should not be given so much room for a small file.
        pieces, wanted = [], self.left + 1 if size < 0 else size
        while wanted > 0 and (piece := self.stream.read(min(wanted, _PIECE))):
            pieces.append(piece)
            wanted -= len(piece)
            self.left -= len(piece)
            if self.left < 0:
                raise too_much_unpacked(self.path, self.most)
        return b"".join(pieces)


def most_unpacked(size: int) -> int:
    """The bytes that a compressed file of ``size`` bytes may unpack to."""
    return max(ALWAYS_UNPACKED, MOST_TIMES * size)


def too_much_unpacked(path: Path, most: int) -> DataError:
    """What is said of a file that holds more."""
    return DataError(
        f"{path}: unpacks to more than {most >> 20:,} MiB, over {MOST_TIMES} times its size, which looks like a "
        "decompression bomb. If you trust it, unpack it yourself and give the unpacked file."
    )


def text_lines(path: Path, newline: str | None = None) -> Iterator[str]:
    """The lines of a text with their ends, a byte-order mark passed over, bytes that are not UTF-8 as surrogates."""
    with open_input(path) as stream, io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline=newline) as text:
        for number in itertools.count(1):
            line = text.readline(LONGEST_LINE + 1)
            if len(line) > LONGEST_LINE:
                raise too_long(path, number)
            if not line:
                return
            yield line


def too_long(path: Path, number: int) -> DataError:
    """What is said of a line, or of a row of several, that no honest file has."""
    return DataError(
        f"{path}, line {number}: longer than {LONGEST_LINE >> 20} MiB. Is a line end or a quote missing? Is it text?"
    )


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[Any]:
    """A binary stream that compresses as the file's ending says."""
    compression = COMPRESSIONS[split_endings(path)[1]]
    if compression == "xz":
        with _xz(path, path, "wb") as file:
            yield file
    elif compression:
        with pa.OSFile(str(path), "wb") as raw, pa.CompressedOutputStream(raw, compression) as stream:
            yield stream
    else:
        with pa.OSFile(str(path), "wb") as stream:
            yield stream
