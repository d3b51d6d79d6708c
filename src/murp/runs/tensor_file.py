"""The file of a checkpoint, written and checked in pieces: memory beside the tables is a few megabytes.

It is a safetensors file: 8 bytes with the length of a header, the header in JSON, the tables one after another. Its
metadata are the format, the state of training as JSON text, a checksum of the tables and one of that text, which says
the format again: by this a damaged number is told from that of a version of murp to come.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from murp.errors import RunError
from murp.files import fields, flush, parse_json
from murp.runs import mapping

FORMAT = 1
DTYPES = {"F32": torch.float32, "F64": torch.float64, "F16": torch.float16, "BF16": torch.bfloat16}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METADATA = {"format", "checksum", "state", "state_checksum"}
PIECE = 2**22
# A network file system forgets an open file (ESTALE) that another machine has replaced.
GONE = (errno.ENOENT, errno.ESTALE)
TOO_MANY = (errno.EMFILE, errno.ENFILE)  # files are open: no fault of this one


class DamagedError(RunError):
    """A checkpoint that is missing, cannot be read, or is not what was written."""


class MissingError(DamagedError):
    """A checkpoint that is not there, or was taken away while it was read."""


def write(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write contiguous tables on the CPU and flush them to the disk. Raises OSError.

    By hand: earlier versions of the safetensors library copy all tables before they write one. Tables of small numbers
    come last, so that every table begins where one of its numbers may.
    """
    tables = dict(sorted(tables.items(), key=lambda one: -one[1].itemsize))
    text = json.dumps({**state, "format": FORMAT})
    header: dict[str, Any] = {
        "__metadata__": {
            "format": str(FORMAT),
            "checksum": checksum(tables),
            "state": text,
            "state_checksum": _text_checksum(text),
        }
    }
    end = 0
    for name, values in tables.items():
        begin, end = end, end + values.nbytes
        header[name] = {"dtype": NAMES[values.dtype], "shape": list(values.shape), "data_offsets": [begin, end]}
    words = json.dumps(header).encode()
    # Tables begin with a page if one is large, see :func:`murp.runs.mapping.padded`; or where a number of 8 bytes may.
    words += b" " * (-(8 + len(words)) % (mapping.PAGE if mapping.worth(tables.values()) else 8))
    with path.open("wb") as file:
        file.write(len(words).to_bytes(8, "little"))
        file.write(words)
        for values in tables.values():
            file.write(_bytes(values))
        file.flush()
        flush(file.fileno())
        if hasattr(os, "posix_fadvise"):
            # Whoever reads the file now gets it from the disk and not from memory, where the file system obeys.
            with contextlib.suppress(OSError):
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class File:
    """A file of a checkpoint, kept open: what is read is what was opened, whatever takes its place meanwhile.

    ``state`` is the state in it, ``tables`` where its tables stand; whether those are whole is asked by :meth:`verify`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with faults(path), contextlib.ExitStack() as held:
            self._file = held.enter_context(path.open("rb"))
            self._metadata, self.tables = _contents(self._file)
            self.state = checked_state(path, self._metadata, self._metadata["checksum"])
            held.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()

    def shapes(self) -> dict[str, list[int]]:
        """Of every table."""
        return {name: list(table.shape) for name, table in self.tables.items()}

    def verify(self) -> None:
        """Raise DamagedError unless all of it is what was written."""
        with faults(self.path):
            digest = _digest()
            for name in sorted(self.tables):
                table = self.tables[name]
                _describe(digest, name, table.shape, table.dtype)
                self._file.seek(table.begin)
                for place in range(table.begin, table.end, PIECE):
                    digest.update(self._file.read(min(PIECE, table.end - place)))
            checked_state(self.path, self._metadata, digest.hexdigest())

    def rows(self, name: str, start: int, out: Tensor) -> None:
        """Fill ``out`` (n, …), contiguous and on the CPU, with the rows of a table from ``start`` on."""
        with faults(self.path):
            self._file.seek(self.tables[name].begin + start * out[:1].nbytes)
            if out.nbytes and self._file.readinto(_bytes(out)) != out.nbytes:
                raise ValueError(f"it ends within the table {name}")

    def mapped(self) -> dict[str, Tensor]:
        """Tables that are mapped into memory and not read; takes seconds for any size.

        Where everything stands is checked, and the state; the tables' checksum is not, which needs all of them. Pages
        are copied where they are written to. A checkpoint in its place is never changed, only replaced by another
        file, so that what is mapped stays as it was.
        """
        with faults(self.path):
            return {
                name: mapping.mapped(table.shape, table.dtype, [self.piece(name)])
                for name, table in self.tables.items()
            }

    def piece(self, name: str) -> mapping.Piece:
        """Where a table stands, for a mapping."""
        table = self.tables[name]
        return mapping.Piece(self._file, table.begin, table.end - table.begin)

    def digest(self) -> str:
        """The checksum of the tables, as the file says it."""
        return self._metadata["checksum"]


def verify(path: Path) -> dict[str, Any]:
    """The state in a checkpoint that is whole; raises DamagedError if it is not."""
    with File(path) as file:
        file.verify()
        return file.state


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tables and state of a checkpoint that is whole; raises DamagedError if it is not.

    Everything is read from one open file, and nothing stays mapped, so replacing the file meanwhile does no harm. (The
    safetensors library opens a file twice, by its name.)
    """
    with _opened(path) as file:
        metadata, places = _contents(file)
        tables = {}
        for name, table in places.items():
            values = tables[name] = torch.empty(table.shape, dtype=table.dtype)
            file.seek(table.begin)
            if file.readinto(_bytes(values)) != values.nbytes:
                raise ValueError(f"it ends within the table {name}")
        return tables, checked_state(path, metadata, checksum(tables))


def checked_state(path: Path, metadata: dict[str, str], tables: str) -> dict[str, Any]:
    """The state in a checkpoint's metadata; ``tables`` is the checksum of the tables found beside them."""
    state_text = metadata["state"]
    right = _text_checksum(state_text)
    if metadata.get("format") != str(FORMAT):
        if metadata.get("state_checksum") == right and parse_json(state_text).get("format") == FORMAT:
            raise DamagedError(f"{path} is damaged: its format cannot be {metadata.get('format')!r}.")
        raise RunError(
            f"{path} has format {metadata.get('format')!r}; this version of murp reads {FORMAT}. "
            "Use the version of murp that wrote it, or a newer one."
        )
    if metadata.get("checksum") != tables:
        raise DamagedError(f"{path} is damaged: its checksum does not match its content.")
    # The first checkpoints of format 1 have no checksum of their state; but one under a damaged name counts.
    if set(metadata) - METADATA or metadata.get("state_checksum", right) != right:
        raise DamagedError(f"{path} is damaged: the checksum of its state does not match its content.")
    state = fields(parse_json(state_text), {"epoch": int})
    state.pop("format", None)
    return state


def checksum(tables: dict[str, Tensor]) -> str:
    """Of names, shapes, types and values of contiguous tables on the CPU; copies nothing."""
    digest = _digest()
    for name in sorted(tables):
        _describe(digest, name, tables[name].shape, tables[name].dtype)
        digest.update(_bytes(tables[name]))
    return digest.hexdigest()


def _bytes(values: Tensor) -> memoryview:
    """The memory of a contiguous table on the CPU; nothing is copied."""
    return values.view(-1).view(torch.uint8).numpy().data


def _text_checksum(text: str) -> str:
    digest = _digest()
    digest.update(text.encode())
    return digest.hexdigest()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """The file at ``path``; what goes wrong with it is a DamagedError."""
    with faults(path), path.open("rb") as file:
        yield file


@contextlib.contextmanager
def faults(path: Path) -> Iterator[None]:
    """Raise what goes wrong with the file at ``path`` as a DamagedError, unless the file has no part in it."""
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno in GONE:
            raise MissingError(f"there is no checkpoint at {path}.") from None
        if isinstance(error, OSError) and error.errno in TOO_MANY:
            raise RunError(
                f"{path} cannot be opened: this process has too many files open. Raise its limit (`ulimit -n`)."
            ) from None
        raise DamagedError(f"{path} is damaged: it cannot be read ({error!r}).") from error


class Place(NamedTuple):
    """Where a table stands in the file."""

    shape: list[int]
    dtype: torch.dtype
    begin: int
    end: int


def _contents(file: BufferedReader) -> tuple[dict[str, str], dict[str, Place]]:
    """The metadata, and where each table stands; a ValueError if tables and file do not fit each other."""
    size = os.fstat(file.fileno()).st_size
    length = int.from_bytes(file.read(8), "little")
    if length > size:
        raise ValueError("the header is longer than the file")
    header = parse_json(file.read(length))
    metadata = header.pop("__metadata__")
    tables, end = {}, 8 + length
    for name, about in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
        table = Place(about["shape"], DTYPES[about["dtype"]], *(8 + length + place for place in about["data_offsets"]))
        if any(type(number) is not int or number < 0 for number in table.shape):
            raise ValueError(f"the table {name} cannot have the shape {table.shape}")
        if table.begin != end or table.end - table.begin != math.prod(table.shape) * table.dtype.itemsize:
            raise ValueError(f"the table {name} is not where it should be")
        tables[name], end = table, table.end
    if end != size:
        raise ValueError("the tables end before or after the file")
    return metadata, tables


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _describe(digest: hashlib.blake2b, name: str, shape: Any, dtype: torch.dtype) -> None:
    digest.update(f"{name} {tuple(shape)} {dtype}".encode())
