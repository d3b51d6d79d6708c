"""Formats of triples: a file here and a line in :data:`FORMATS` each.

A format is a module with ``read(path, columns) -> Facts``. It is imported when a file with its ending is read, so that
what it needs is needed by those who use it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from murp.errors import DataError
from murp.graph.reading.columns import EACH_BY_TITLE, Columns
from murp.graph.reading.facts import Facts, NoFacts
from murp.graph.reading.streams import split_endings

FORMATS = {
    ".txt": "text",
    ".tsv": "text",
    ".csv": "text",
    ".parquet": "parquet",
    ".jsonl": "json_lines",
    ".nt": "rdf",
    ".nq": "rdf",
    ".ttl": "rdf",
    ".trig": "rdf",
    ".rdf": "rdf",
    ".owl": "rdf",
    ".jsonld": "rdf",
    ".obo": "obo",
    ".graphml": "graphml",
    ".sql": "sql",
}
"""The endings of files of triples; each may be compressed."""

WITH_COLUMNS = (".txt", ".tsv", ".csv", ".parquet", ".jsonl", ".sql")
"""Those whose columns can be chosen."""

FORMATS_IN_WORDS = f"{', '.join(list(FORMATS)[:-1])} or {list(FORMATS)[-1]}, each also with .gz, .xz or .zst"


ARCHIVES = (".zip", ".tar", ".tgz", ".7z", ".rar")
"""Endings of packed files that may hold many others."""


def read_facts(path: Path, columns: Columns = EACH_BY_TITLE) -> Facts:
    """What a file states, in whatever format its name says."""
    form, _ = split_endings(path)
    if form not in FORMATS:
        unpack = "Unpack it first. " if path.suffix.lower() in ARCHIVES or ".tar" in path.suffixes else ""
        raise DataError(f"{path}: not a format of triples that is known here. {unpack}Known: {FORMATS_IN_WORDS}.")
    if form not in WITH_COLUMNS and columns != EACH_BY_TITLE:
        raise DataError(f"{path}: {form} files have no columns to choose and no header: leave out these options.")
    facts: Facts = import_module(f"{__name__}.{FORMATS[form]}").read(path, columns)
    if not len(facts.triples):
        raise NoFacts(f"{path}: holds no triples. Put rows of head, relation and tail into it.")
    return facts
