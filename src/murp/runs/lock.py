"""One training at a time into a run folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

from murp.commands import command
from murp.errors import RunError
from murp.files import lock, parts
from murp.runs import checkpoint, folder

_held: dict[Path, int] = {}
"""The open folders that this process has locked."""


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Refuse if another process trains into the run folder ``path``; meanwhile refuse all others.

    Both the folder and a file in it are locked: the file could be removed, and network file systems have no locks on
    folders. The system releases the locks when the process ends, for any reason. The content of the file is only for
    the message. Half-written files of a killed training are removed.
    """
    folder.check(path)
    with contextlib.ExitStack() as handles:
        try:
            whole = _opened(path, os.O_RDONLY, handles)
            refusals = _lock(path, whole)
            file = _opened(path / folder.LOCK, os.O_RDWR | os.O_CREAT, handles)
            refusals += _lock(path, file)
        except OSError as error:
            raise folder.unwritable(path / folder.LOCK, error) from error
        if len(refusals) == 2:
            warnings.warn(
                f"{path} cannot be locked ({refusals[-1]}): nothing stops a second training in this folder. Make sure "
                "that there is none.",
                stacklevel=3,
            )
        try:
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
            for name in (folder.LAST, folder.BEST, folder.METRICS, folder.CONFIG):
                for left in parts(path / name):
                    left.unlink()
            for name in (folder.LAST, folder.BEST):
                for left in parts(checkpoint.shards_of(path / name)):
                    shutil.rmtree(left)
        except OSError as error:
            raise folder.unwritable(path / folder.LOCK, error) from error
        _held[path] = whole
        handles.callback(_held.pop, path, None)
        yield


def check_held(path: Path) -> None:
    """Raise if another folder has taken the place of the run folder at ``path`` that this process has locked.

    Otherwise two runs would mix. On some network file systems the same folder gets another inode number; then it is
    recognised by this process's id in its lock file.
    """
    if path not in _held:
        return
    try:
        same = os.path.samestat(os.fstat(_held[path]), os.stat(path))
    except OSError:
        return  # it is gone, which whoever writes will notice
    if not same and _process(path) != str(os.getpid()):
        raise checkpoint.vanished(path)


def _opened(path: Path, how: int, handles: contextlib.ExitStack) -> int:
    handle = os.open(path, how, 0o666)
    handles.callback(os.close, handle)
    return handle


def _lock(path: Path, handle: int) -> list[str]:
    """Lock a part of the run folder ``path``; why that cannot be done, where the system has no locks."""
    try:
        lock(handle)
    except BlockingIOError:
        raise _taken(path) from None
    except OSError as error:
        return [str(error.strerror)]
    return []


def _process(path: Path) -> str:
    """The number of the process that trains, as the lock file says it; empty if that is lost."""
    try:
        with (path / folder.LOCK).open(errors="replace") as file:
            text = file.read(20).strip()
    except OSError:
        return ""
    return text if text.isdecimal() else ""


def _taken(path: Path) -> RunError:
    process = _process(path)
    who, how = (f"process {process}", f"`kill -INT {process}`") if process else ("another process", "Ctrl-C")
    return RunError(
        f"{path} is being trained by {who} already. Wait for it, or stop it with {how}, which writes a checkpoint, and "
        f"continue with `{command('train', '--resume', path)}`."
    )
