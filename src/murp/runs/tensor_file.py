"""The file of a checkpoint, written and checked in pieces: memory beside the tables is a few megabytes.

It is a safetensors file: 8 bytes with the length of a header, the header in JSON, the tables one after another. Its
metadata are the format, the state of training as JSON text, a checksum of the tables and one of that text, which says
the format again: by this a damaged number is told from that of a version of murp to come.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from murp.errors import RunError
from murp.files import fields, parse_json

FORMAT = 1
DTYPES = {"F32": torch.float32, "F64": torch.float64}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
METADATA = {"format", "checksum", "state", "state_checksum"}
PIECE = 2**22


class DamagedError(RunError):
    """A checkpoint that is missing, cannot be read, or is not what was written."""


def write(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write contiguous tables on the CPU and flush them to the disk. Raises OSError.

    By hand: earlier versions of the safetensors library copy all tables before they write one.
    """
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
    words += b" " * (-len(words) % 8)  # tables begin where a number of 8 bytes may
    with path.open("wb") as file:
        file.write(len(words).to_bytes(8, "little"))
        file.write(words)
        for values in tables.values():
            file.write(values.numpy().data)
        file.flush()
        os.fsync(file.fileno())
        if hasattr(os, "posix_fadvise"):
            # Whoever reads the file now gets it from the disk and not from memory.
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def verify(path: Path) -> dict[str, Any]:
    """The state in a checkpoint that is whole; raises DamagedError where it is not."""
    try:
        with path.open("rb") as file:
            header, start = _header(file)
            metadata = header.pop("__metadata__")
            if max(table["data_offsets"][1] for table in header.values()) != os.fstat(file.fileno()).st_size - start:
                raise ValueError("the tables end before or after the file")
            digest = _digest()
            for name in sorted(header):
                _describe(digest, name, header[name]["shape"], DTYPES[header[name]["dtype"]])
                begin, end = header[name]["data_offsets"]
                file.seek(start + begin)
                for place in range(begin, end, PIECE):
                    digest.update(file.read(min(PIECE, end - place)))
            return checked_state(path, metadata, digest.hexdigest())
    except FileNotFoundError:
        raise DamagedError(f"there is no checkpoint at {path}.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path} is damaged: it cannot be read ({error!r}).") from error


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
        digest.update(tables[name].numpy().data)
    return digest.hexdigest()


def _text_checksum(text: str) -> str:
    digest = _digest()
    digest.update(text.encode())
    return digest.hexdigest()


def _header(file: BinaryIO) -> tuple[dict[str, Any], int]:
    """The header, and where the tables begin."""
    size = int.from_bytes(file.read(8), "little")
    if size > os.fstat(file.fileno()).st_size:
        raise ValueError("the header is longer than the file")
    return parse_json(file.read(size)), 8 + size


def _digest() -> hashlib.blake2b:
    return hashlib.blake2b(digest_size=16)


def _describe(digest: hashlib.blake2b, name: str, shape: Any, dtype: torch.dtype) -> None:
    digest.update(f"{name} {tuple(shape)} {dtype}".encode())
