"""Graphs that were parsed once, kept in coded form so that the next start need not parse again.

An entry is a folder as ``KnowledgeGraph.save`` writes it, and its name ends in a hash of all it was made from: the
content and names of the source files, the seed of the split, the version of the program. What the files say now
decides which entry fits, never their dates. Entries lie in ``.murp-cache`` beside the data where that can be
written, else in the user's cache. An entry that is missing, damaged or cannot be written is no error: the files
are parsed as if there were no cache. ``MURP_CACHE=off`` in the environment does without it.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import murp
from murp.errors import DataError
from murp.files import write_text
from murp.graph.knowledge_graph import KnowledgeGraph
from murp.graph.storage import read_saved, save

FOLDER = ".murp-cache"
# Smaller files are parsed within 20 ms of what hashing them and reading an entry takes.
LEAST_BYTES = 2 << 20


def coded(
    path: Path, files: Sequence[Path], user_cache: Path, parse: Callable[[], KnowledgeGraph], seed: int | None = None
) -> KnowledgeGraph:
    """The graph that ``parse`` makes of ``files``, from the cache where it is there and put there where it is not.

    ``path`` is the dataset, a folder or a single file; ``seed`` splits a single file. One entry is kept for a
    dataset and seed: a new one takes the place of what the files held before.
    """
    key = None if os.environ.get("MURP_CACHE", "").lower() == "off" else _key(files, seed)
    if key is None:
        return parse()
    label = "dataset" if seed is None else f"{path.name}-seed{seed}"
    folder = path if path.is_dir() else path.parent
    of_folder = hashlib.blake2b(os.fsencode(folder.resolve()), digest_size=8).hexdigest()
    homes = [user_cache / "coded" / of_folder]
    # The superuser can write where nobody may; a folder marked read-only is left as it is all the same.
    if folder.stat().st_mode & 0o222:
        homes.insert(0, folder / FOLDER)
    for home in homes:
        try:
            return read_saved(home / f"{label}-{key}")
        except DataError:
            continue
    graph = parse()
    # Files that were changed while they were parsed have another key now, and no entry.
    if _key(files, seed) == key:
        for home in homes:
            if _keep(graph, home, label, key):
                break
    return graph


def _key(files: Sequence[Path], seed: int | None) -> str | None:
    """The hash that names an entry; None where an entry is not worth it or the files cannot be read."""
    whole = hashlib.blake2b(f"{murp.__version__} {seed}".encode(), digest_size=16)
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


def _keep(graph: KnowledgeGraph, home: Path, label: str, key: str) -> bool:
    """Write an entry and remove those it supersedes; whether there is one now."""
    entry = home / f"{label}-{key}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        if not (ignore := home / ".gitignore").exists():
            write_text(ignore, "*\n")
        # The entry was looked for and could not be read: what stands there is damaged.
        shutil.rmtree(entry, ignore_errors=True)
        save(graph, entry)
    except (DataError, OSError):
        # Of two processes that write the same entry the second is refused.
        return entry.is_dir()
    for old in home.glob(f"{glob.escape(label)}-*"):
        if old != entry and len(old.name) == len(entry.name):
            shutil.rmtree(old, ignore_errors=True)
    return True
