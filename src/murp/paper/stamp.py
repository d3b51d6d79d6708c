"""Which code made a result: its version, its digest, its commit, and when."""

from __future__ import annotations

import hashlib
import re
import time
from functools import cache
from pathlib import Path

import murp

PACKAGE = Path(murp.__file__).parent


def stamp() -> dict[str, str | None]:
    """What every stored result carries."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"murp": murp.__version__, "source": source_digest(), "commit": commit(PACKAGE.parents[1]), "date": now}


@cache
def source_digest() -> str:
    """The code itself, in twelve digits: a version number stays the same while the code changes."""
    digest = hashlib.blake2b(digest_size=6)
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
def commit(root: Path) -> str | None:
    """The commit that the git checkout at ``root`` stands at; None where there is none.

    It is where to look first for the code of :func:`source_digest`, which tells whether the code had been changed.
    Read from git's own files: git itself need not be there.
    """
    try:
        own = root / ".git"
        if own.is_file():  # a worktree's says where its files are
            own = root / _text(own).removeprefix("gitdir: ")
        shared = own / _text(own / "commondir") if (own / "commondir").exists() else own
        found = _text(own / "HEAD")
        if found.startswith("ref: "):
            found = _branch(shared, found.removeprefix("ref: "))
    except (OSError, ValueError):
        return None
    return found if re.fullmatch("[0-9a-f]{40,64}", found) else None


def _branch(git: Path, name: str) -> str:
    """The commit of a branch, which stands in a file of its own or among others; nothing where it has none."""
    if (git / name).exists():
        return _text(git / name)
    packed = (line.partition(" ") for line in _text(git / "packed-refs").splitlines())
    return next((hashed for hashed, _, found in packed if found == name), "")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()
