"""Writing files and folders so that a reader sees the old content or the new, never half of it."""

from __future__ import annotations

import contextlib
import errno
import glob
import json
import math
import os
import re
import reprlib
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

from murp.errors import MurpError, why_not
from murp.paths import not_a_file, not_text

try:
    import fcntl
except ImportError:  # a Python without it
    fcntl = None  # type: ignore[assignment]

# What network and user-space file systems answer that cannot flush a folder.
CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


@contextlib.contextmanager
def replacing(path: Path, *, keep: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path beside ``path``; on success flush it to disk and rename it to ``path``.

    If the block raises, or the disk is full when flushing, the temporary file is removed and ``path`` stays as it was.
    ``keep``: the old file is renamed to this, at the last moment, so that ``path`` is missing only while a file is
    renamed.
    """
    part = _new_part(path)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        with part.open("rb+") as file:
            flush(file.fileno())
        if keep is not None and path.exists():
            path.replace(keep)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


@contextlib.contextmanager
def new_folder(path: Path, error: type[MurpError]) -> Iterator[Path]:
    """Yield a temporary folder beside ``path``; on success flush its files and rename it to ``path``.

    A ``path`` that exists, unless it is an empty folder, and whatever the system refuses raise ``error``; if the block
    raises, or the disk is full, nothing is left behind. Leftovers of a killed process are removed by the next one that
    makes the same folder.
    """
    if (why := not_text(str(path))) is not None:
        raise error(f"{path} cannot be made: its name {why}.")
    try:
        if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
            raise error(f"{path} exists already. Choose another folder, or remove it first.")
        if path.resolve() == Path.cwd():
            raise error(f"{path} is the folder you are in, which cannot be replaced. Name a new folder within it.")
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in parts(path):
            _remove_abandoned(left)
        part = _new_part(path)
        part.mkdir()
        held = os.open(part, os.O_RDONLY)
    except OSError as refusal:
        raise error(f"{path} cannot be made: {_why_not_made(refusal)}") from refusal
    try:
        _try_lock(held)
        yield part
        for file in part.rglob("*"):
            if file.is_file():
                with file.open("rb+") as written:
                    flush(written.fileno())
            elif file.is_dir():
                flush_folder(file)
        flush_folder(part)
        try:
            part.replace(path)
        except OSError as refusal:
            if refusal.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            raise error(
                f"{path} exists already: another process has made it meanwhile. Choose another folder, or use that one."
            ) from None
    except OSError as refusal:
        shutil.rmtree(part, ignore_errors=True)
        raise error(f"{path} cannot be written: {why_not(refusal)}. Nothing was kept.") from refusal
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    finally:
        os.close(held)
    flush_folder(path.parent)


def parts(path: Path) -> list[Path]:
    """The temporary files or folders of ``path`` that lie beside it, in use or left behind."""
    return sorted(path.parent.glob(f".{glob.escape(path.name)}.*.part"))


_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def parse_json(text: str | bytes) -> Any:
    """Parse JSON; nesting that is too deep and lone surrogates are a ValueError, like any other error."""
    try:
        text = text if isinstance(text, str) else text.decode()
        value = json.loads(text)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()  # a pair of halves is one character, and right
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("it is not valid Unicode (a lone surrogate)") from None
    return value


def fields(value: Any, kinds: Mapping[str, type | UnionType]) -> dict[str, Any]:
    """``value``, as JSON had it, if it is an object with these fields; a ValueError names the one that is not right.

    Numbers must be finite, and true and false are none.
    """
    if not isinstance(value, dict):
        raise ValueError("it is not an object with named fields")
    for name, kind in kinds.items():
        if name not in value:
            raise ValueError(f"it has no field {name!r}")
        found = value[name]
        if not isinstance(found, kind) or (isinstance(found, int | float) and not _is_finite_number(found)):
            raise ValueError(f"its field {name!r} cannot be {reprlib.repr(found)}")
    return value


def _is_finite_number(value: float) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def refuse_strangers(folder: Path, error: type[MurpError]) -> None:
    """Raise if a member of ``folder`` is no file and no folder.

    A symbolic link in a folder from others could read any file; reading a pipe could wait forever.
    """
    try:
        members = list(folder.iterdir())
    except OSError as refusal:
        raise error(f"{folder} cannot be read: {refusal.strerror}.") from refusal
    for member in members:
        if member.is_symlink():
            raise error(f"{member} is a symbolic link. Put the file itself there, or remove the link.")
        if not member.is_dir() and (why := not_a_file(member)) is not None:
            raise error(f"{member} {why}. Put a file there, or remove it.")


def write_text(path: Path, text: str) -> None:
    """Write ``text`` to ``path`` atomically."""
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def user_cache() -> Path | None:
    """``murp`` in $XDG_CACHE_HOME, or in ~/.cache: what can be made again; None if there is no home folder.

    As the XDG specification has it, a relative $XDG_CACHE_HOME does not count.
    """
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named / "murp"
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and a user without an entry in the system's list
        return None
    return home / ".cache" / "murp" if home.is_absolute() and os.path.isdir(home) else None


def private_folder(path: Path) -> bool:
    """Make a folder for this user alone if there is none; whether it is there and nobody else may write to it.

    The content of a cache is trusted, so only this user may write to it.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    try:
        found = path.lstat()
    except (OSError, ValueError):
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def _remove_abandoned(part: Path) -> None:
    """Remove a temporary folder unless the process that makes it lives."""
    with contextlib.suppress(OSError):
        handle = os.open(part, os.O_RDONLY)
        try:
            if _try_lock(handle):
                shutil.rmtree(part)
        finally:
            os.close(handle)


def lock(handle: int) -> None:
    """Lock an open file or folder for this process; the system ends the lock with the process.

    Raises BlockingIOError if another one holds it, and another OSError if the system has no locks.
    """
    if fcntl is None:
        raise OSError(errno.ENOSYS, "this Python was built without fcntl")
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _why_not_made(refusal: OSError) -> str:
    """Why the system refuses a folder, and what to do."""
    if refusal.errno == errno.ENAMETOOLONG:
        return "its name is too long. Choose a shorter one."
    if isinstance(refusal, FileExistsError | NotADirectoryError):
        return "a part of this path is a file. Choose a folder that can be written."
    return f"{refusal.strerror}. Choose a folder that can be written."


def _try_lock(handle: int) -> bool:
    """Whether this process now holds the lock of an open file or folder."""
    try:
        lock(handle)
    except OSError:
        return False
    return True


def _new_part(path: Path) -> Path:
    """A name for a temporary file or folder of ``path``, which :func:`parts` finds.

    It is made with the permissions of any other file: the system applies the umask, which no process can read without
    setting it for all its threads.
    """
    return path.parent / f".{path.name}.{secrets.token_hex(4)}.part"


def flush(handle: int) -> None:
    """Flush an open file or folder to disk, where the file system can. Raises OSError if the disk fails."""
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in CANNOT_FLUSH:
            raise


def flush_folder(folder: Path) -> None:
    """Flush the names in ``folder`` to disk: a renamed file is safe only then."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        flush(handle)
    finally:
        os.close(handle)
