"""Which code made a result: its version, its commit, whether the tree was clean, a digest of the code, when and how.

The commit is read from git's own files, so that git need not be installed. git is only used to check whether the tree
was clean. If the code is outside a checkout (an installed package, a copy of the tree on another machine), both can be
given:

    MURP_COMMIT=$(git rev-parse HEAD) MURP_CLEAN=1 murp paper run table1

Unknown values are None. The digest of the code is always known: :mod:`murp.paper.history` finds its commit, and notices
a wrong commit.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import murp
from murp.errors import ConfigError

PACKAGE = Path(murp.__file__).parent
ROOT = PACKAGE.parents[1]  # of the checkout, where this is one
# Results and the pages made of them change while results are made; they are no part of what makes them.
MADE = (":!results", ":!docs", ":!README.md")
COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


def code() -> dict[str, Any]:
    """The description of the code that every stored result has.

    ``murp`` the version; ``commit``; ``clean``, whether nothing but results and pages differs from that commit;
    ``source``, the digest of the package; ``date``; ``command``.
    """
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"murp": murp.__version__, **identity(), "date": now, "command": command(sys.argv)}


@cache
def identity() -> dict[str, Any]:
    """Commit, clean and source, looked up once.

    Long work calls this at its start: someone may edit or commit while it runs.
    """
    found = commit(ROOT)
    handed, handed_clean = handed_in(os.environ)
    tree = clean(ROOT) if found else None
    return {
        "commit": found or handed,
        "clean": handed_clean if tree is None else tree,
        "source": source_digest(),
    }


@cache
def source_digest() -> str:
    """The package's code in twelve digits: a version number stays the same while the code changes."""
    return digest(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))


def digest(contents: Iterable[bytes]) -> str:
    """Of the package's modules, in the order of their paths."""
    whole = hashlib.blake2b(digest_size=6)
    for content in contents:
        whole.update(content)
    return whole.hexdigest()


def commit(root: Path) -> str | None:
    """The commit that the git checkout at ``root`` stands at; None if there is none."""
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
    return found if COMMIT.fullmatch(found) else None


def clean(root: Path) -> bool | None:
    """Whether the checkout at ``root`` differs from its commit in results and pages at most; None if git cannot say.

    A new file that git does not ignore is a difference, too.
    """
    told = git(root, "status", "--porcelain", "--", ".", *MADE)
    return None if told is None else not told.strip()


def handed_in(variables: os._Environ[str] | dict[str, str]) -> tuple[str | None, bool | None]:
    """Commit and clean as MURP_COMMIT and MURP_CLEAN say, each None if it is not set."""
    named, tree = variables.get("MURP_COMMIT") or None, variables.get("MURP_CLEAN") or None
    if named is not None and not COMMIT.fullmatch(named):
        raise ConfigError(
            f"MURP_COMMIT is {named!r}, which is no commit. Give all of its digits: `git rev-parse HEAD`."
        )
    if tree not in (None, "0", "1"):
        raise ConfigError(f"MURP_CLEAN is {tree!r}. Set it to 1 where `git status` shows no change, else to 0.")
    return named, None if tree is None else tree == "1"


def command(words: Sequence[str]) -> str:
    """The command line, to be read: folders of this machine that an absolute path begins with are left out."""
    return shlex.join(re.sub(r"(^|=)/(?:[^/]+/)*", r"\1", word) for word in words)


def git(root: Path, *words: str, given: str | None = None) -> str | None:
    """What git prints about the checkout at ``root``; None if there is no git, or it refuses."""
    done = git_bytes(root, *words, given=None if given is None else given.encode())
    return None if done is None else done.decode("utf-8", "replace")


def git_bytes(root: Path, *words: str, given: bytes | None = None) -> bytes | None:
    """The same for what need not be text."""
    # Variables such as GIT_DIR, which git sets for its hooks, would send it to another repository.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(root), *words],
            input=given, stdin=subprocess.DEVNULL if given is None else None, capture_output=True, env=variables,
            check=False,
        )  # fmt: skip
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _branch(shared: Path, name: str) -> str:
    """The commit of a branch, which stands in a file of its own or among others; nothing if it has none."""
    if (shared / name).exists():
        return _text(shared / name)
    packed = (line.partition(" ") for line in _text(shared / "packed-refs").splitlines())
    return next((hashed for hashed, _, found in packed if found == name), "")


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8").strip()
