"""Writing files and folders so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from murp.errors import MurpError


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success flush it to disk and rename it to ``path``.

    If the block raises, or the disk is full when flushing, the temporary file is removed and
    whatever stood at ``path`` before still stands.
    """
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        # mkstemp makes files private to the user; a finished file follows the umask like any other.
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def new_folder(path: Path, error: type[MurpError]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; on success flush its files and rename it to ``path``.

    A ``path`` that exists, unless it is an empty folder, and whatever the system refuses raise
    ``error``; if the block raises, or the disk is full, nothing is left behind.
    """
    try:
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise error(f"{path} exists already. Choose another folder, or remove it first.")
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as refusal:
        raise error(f"{path} cannot be made: {refusal.strerror}. Choose a folder that can be written.") from refusal
    try:
        yield part
        for file in part.rglob("*"):
            if file.is_file():
                with file.open("rb+") as written:
                    os.fsync(written.fileno())
        part.chmod(0o777 & ~_umask())
        part.replace(path)
    except OSError as refusal:
        shutil.rmtree(part, ignore_errors=True)
        raise error(f"{path} cannot be written: {refusal}. Nothing was kept.") from refusal
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def _umask() -> int:
    # The only way to read it is to set it.
    umask = os.umask(0)
    os.umask(umask)
    return umask
