"""A cache of parsed graphs, so that the next start need not parse them again.

An entry is a folder with a graph as ``KnowledgeGraph.save`` writes it and the findings of reading. Its name is a hash
of everything it depends on: the content and names of the source files, the seed of the split, the options for columns,
the version of the program. Only the content of the files decides which entry is used, never their place or date. The
files of an entry are checked with checksums when they are read.

Entries are only in the user's cache. A hash in a name is no proof: the author of a dataset could add an entry of
another graph under the right name. So a cache beside the data is never read. For the same reason the folder of entries
must belong to the user, and nobody else may write to it.

If an entry is missing, damaged or cannot be written, or if there is no home folder, the files are parsed without the
cache. The most recently used entries are kept, up to :data:`MOST_ENTRIES` and :data:`MOST_BYTES`. What a stopped
reading in pieces has left is kept for a month, so that it can go on. ``MURP_CACHE=off`` in the environment switches
the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import murp
from murp.display import aside
from murp.errors import DataError
from murp.files import fields, lock, new_folder, parse_json, private_folder, user_cache, write_text
from murp.graph.findings import Finding
from murp.graph.knowledge_graph import KnowledgeGraph
from murp.graph.large.plan import ReadingPlan
from murp.graph.storage import read_saved, save

READING = 2  # grows when a version that is not released yet makes another graph of the same files
FOLDER = "parsed"
GRAPH, TOLD = "graph", "told.json"
# Smaller files are parsed within 20 ms of what hashing them and reading an entry takes.
LEAST_BYTES = 2 << 20
MOST_ENTRIES, MOST_BYTES = 64, 8 << 30
ABANDONED = 30 * 24 * 3600.0  # seconds after which nobody goes on with a reading that was stopped
WAIT = 0.5  # seconds between two looks whether another process is done
LOOKS = 5  # at a lock file that others may remove


def place() -> Path | None:
    """The folder of the cache; None if it is switched off, or if there is no home folder."""
    return None if os.environ.get("MURP_CACHE", "").lower() == "off" else user_cache()


def coded(files: Sequence[Path], parse: Callable[[], KnowledgeGraph], how: str = "") -> KnowledgeGraph:
    """The result of ``parse`` for ``files``, from the cache; if it is not there, it is parsed and stored.

    ``how``: what else the result depends on, such as the seed of a split or the choice of columns.
    """
    root = place()
    key = None if root is None else _key(files, how)
    if root is None or key is None:
        return parse()
    entry = root / FOLDER / key
    if private_folder(entry.parent):
        with contextlib.suppress(DataError):
            return _read(entry)
    parsed = parse()
    # Files that were changed while they were parsed have another key now, and no entry.
    if _key(files, how) == key:
        _keep(parsed, entry)
    return parsed


def coded_large(plan: ReadingPlan) -> KnowledgeGraph:
    """The graph of files that are read in pieces (:mod:`murp.graph.large`): its coded form is mapped from the cache.

    If another process makes the same entry, this one waits for it, or goes on with its work if it was stopped. Without
    a cache it is mapped from a temporary folder, which is removed at once; mapped files stay usable.
    """
    from murp.graph.large.coding import code  # a compiler, which only large graphs need

    files = [*plan.files, *plan.names.values()]
    how = f"{plan.seed if plan.divided else ''} {plan.columns!r} in pieces {[len(part) for part in plan.parts]}"
    root = place()
    key = None if root is None else _key(files, how)
    if root is None or key is None or not private_folder(root / FOLDER):
        with tempfile.TemporaryDirectory(prefix="murp-") as folder:
            findings = code(plan, Path(folder) / GRAPH)
            return replace(read_saved(Path(folder) / GRAPH), findings=tuple(findings))
    entry = root / FOLDER / key
    with contextlib.suppress(DataError):
        return _read(entry)
    with _alone(entry):
        with contextlib.suppress(DataError):
            return _read(entry)  # another process has made it meanwhile
        made = entry.with_name(f"{key}.graph")
        for left in (entry, made):
            shutil.rmtree(left, ignore_errors=True)
        findings = code(plan, made)
        with new_folder(entry, DataError) as part:
            write_text(part / TOLD, json.dumps([asdict(finding) for finding in findings]))
            made.replace(part / GRAPH)
        _trim(entry.parent)
        return _read(entry)


@contextlib.contextmanager
def _alone(entry: Path) -> Iterator[None]:
    """Wait until no other process makes ``entry``; in this block no other does, where the system has locks."""
    path, told = entry.with_name(f".{entry.name}.lock"), False
    while (held := _held(path)) is None:
        if not told:
            aside("murp: another process is reading the same data. This one waits for its result.")
            told = True
        time.sleep(WAIT)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(held)


def _held(path: Path) -> int | None:
    """The file at ``path``, open and locked; None if another process holds it."""
    for look in range(LOOKS):
        try:
            # For writing, too: network file systems lock no other files.
            held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataError(
                f"{path} cannot be made: {error.strerror}. Free some space there, or name another folder for the "
                "cache: XDG_CACHE_HOME in the environment."
            ) from error
        try:
            lock(held)
            # Whoever held it may have removed it after it was opened here: others would lock a new one. A network file
            # system may give one file two numbers, so that it never looks the same.
            if os.path.samestat(os.fstat(held), path.stat()) or look == LOOKS - 1:
                return held
        except BlockingIOError:
            os.close(held)
            return None
        except FileNotFoundError:
            pass
        except OSError:
            return held  # a system without locks
        os.close(held)
    return None


def _key(files: Sequence[Path], how: str) -> str | None:
    """The hash that names an entry; None if an entry is not worth it or the files cannot be read."""
    whole = hashlib.blake2b(f"{murp.__version__} {READING} {how}".encode(), digest_size=16)
    try:
        if sum(file.stat().st_size for file in files) < LEAST_BYTES:
            return None
        for file in files:
            with file.open("rb") as stream:
                content = hashlib.file_digest(stream, hashlib.blake2b)
            # Names end with the format, which decides how content is read.
            whole.update(hashlib.blake2b(os.fsencode(file.name)).digest() + content.digest())
    except OSError:
        return None  # whoever parses them will say what is wrong
    return whole.hexdigest()


def _read(entry: Path) -> KnowledgeGraph:
    graph = read_saved(entry / GRAPH)
    try:
        told = parse_json((entry / TOLD).read_text(encoding="utf-8"))
        if not isinstance(told, list):
            raise ValueError("it is not a list")
        findings = tuple(_finding(one) for one in told)
    except (OSError, ValueError) as error:
        raise DataError(f"{entry / TOLD} cannot be read: {error}.") from error
    with contextlib.suppress(OSError):
        os.utime(entry)  # used last
    return replace(graph, findings=findings)


def _finding(value: Any) -> Finding:
    """A finding as it was kept."""
    kinds = {"check": str, "where": str, "count": int, "text": str, "examples": list}
    found = fields(value, kinds)
    if set(found) != set(kinds) or not all(isinstance(example, str) for example in found["examples"]):
        raise ValueError("it is not a finding")
    return Finding(**{**found, "examples": tuple(found["examples"])})


def _keep(graph: KnowledgeGraph, entry: Path) -> None:
    """Write an entry, and remove those that are too much."""
    home = entry.parent
    with contextlib.suppress(DataError, OSError):  # of two processes that write the same entry the second is refused
        if not private_folder(home):
            return
        # The entry was looked for and could not be read: what stands there is damaged.
        shutil.rmtree(entry, ignore_errors=True)
        with new_folder(entry, DataError) as part:
            save(graph, part / GRAPH)
            write_text(part / TOLD, json.dumps([asdict(finding) for finding in graph.findings]))
        _trim(home)


def _trim(home: Path) -> None:
    """Remove the entries that were not used for longest; a wrong clock only changes which."""
    entries = [path for path in home.iterdir() if re.fullmatch(r"[0-9a-f]{32}", path.name)]
    total = 0
    for number, entry in enumerate(sorted(entries, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)):
        total += sum(file.stat().st_size for file in entry.rglob("*"))
        if number and (number >= MOST_ENTRIES or total > MOST_BYTES):
            shutil.rmtree(entry, ignore_errors=True)
    for work in home.glob(".*.graph.work"):
        if re.fullmatch(r"\.[0-9a-f]{32}\.graph\.work", work.name) and _is_abandoned(work):
            shutil.rmtree(work, ignore_errors=True)


def _is_abandoned(work: Path) -> bool:
    """Whether a reading in pieces was stopped long ago. A clock that is wrong does not make a running one abandoned."""
    try:
        newest = max(path.stat().st_mtime for path in (work, *work.iterdir()))
        if time.time() - newest < ABANDONED:
            return False
        held = os.open(work, os.O_RDONLY)
    except OSError:
        return False
    try:
        lock(held)  # who reads there has locked it
    except OSError:
        return False
    finally:
        os.close(held)
    return True
