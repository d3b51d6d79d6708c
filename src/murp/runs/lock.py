"""One training at a time into a run folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

from murp.commands import command
from murp.errors import RunError
from murp.files import parts
from murp.runs import folder


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Refuse where another process trains into the run folder ``path``; meanwhile refuse all others.

    The system keeps the lock on the open file and ends it with the process, however that ends: what the file says
    is for the message alone. Files that a killed training left half-written are removed.
    """
    folder.check(path)
    try:
        handle = os.open(path / folder.LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise folder.unwritable(path / folder.LOCK, error) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _taken(path, os.read(handle, 20).decode(errors="replace").strip()) from None
        except OSError as error:
            warnings.warn(
                f"{path} cannot be locked ({error.strerror}): nothing stops a second training into it. See to it that "
                "there is none.",
                stacklevel=3,
            )
        try:
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            for name in (folder.LAST, folder.BEST, folder.METRICS, folder.CONFIG):
                for left in parts(path / name):
                    left.unlink()
        except OSError as error:
            raise folder.unwritable(path / folder.LOCK, error) from error
        yield
    finally:
        os.close(handle)


def _taken(path: Path, process: str) -> RunError:
    return RunError(
        f"{path} is being trained by process {process} already. Wait for it, or stop it with `kill -INT {process}`, "
        f"which writes a checkpoint, and continue with `{command('train', '--resume', path)}`."
    )
