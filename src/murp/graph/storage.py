"""A graph in coded form on disk: how run folders keep theirs.

``graph.json`` (format, name, counts, sha256 of the other files), ``entities.parquet`` and
``relations.parquet`` (id and, where known, name and gloss, in index order), ``train.parquet``,
``valid.parquet`` and ``test.parquet`` (int32 head, relation, tail). What is read back is what was saved, row
for row, or it is an error.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from murp.errors import DataError
from murp.files import new_folder, write_text
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Triples
from murp.graph.reading import COLUMNS
from murp.graph.vocabulary import Vocabulary

MANIFEST = "graph.json"
_FORMAT, _VERSION = "murp graph", 1


def save(graph: KnowledgeGraph, folder: Path) -> None:
    """Write ``graph`` into a new ``folder``; a folder that exists is an error."""
    tables = {"entities": graph.entities.table(), "relations": graph.relations.table()}
    for split in SPLITS:
        triples = graph.split(split)
        tables[split] = pa.table({role: triples[:, i] for i, role in enumerate(COLUMNS)})
    with new_folder(folder, DataError) as part:
        for name, table in tables.items():
            pq.write_table(table, part / f"{name}.parquet", compression="zstd")
        manifest = {
            "format": _FORMAT,
            "version": _VERSION,
            "name": graph.name,
            "rows": {name: len(table) for name, table in tables.items()},
            "sha256": {name: sha256(part / f"{name}.parquet") for name in tables},
        }
        write_text(part / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def is_saved(folder: Path) -> bool:
    """Whether ``folder`` looks like one that :func:`save` wrote."""
    return (folder / MANIFEST).is_file()


def read_saved(folder: Path) -> KnowledgeGraph:
    """The graph that :func:`save` wrote; a DataError where a file is not as it was written."""
    manifest = _manifest(folder / MANIFEST)
    tables = {name: _table(folder / f"{name}.parquet", name, manifest) for name in manifest["rows"]}
    return KnowledgeGraph(
        manifest["name"],
        Vocabulary.from_table("entity", tables["entities"]),
        Vocabulary.from_table("relation", tables["relations"]),
        _triples(tables["train"]),
        _triples(tables["valid"]),
        _triples(tables["test"]),
    )


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if manifest["format"] != _FORMAT:
            raise DataError(f"{path}: the format is {manifest['format']!r} and not {_FORMAT!r}.")
        if manifest["version"] != _VERSION:
            raise DataError(
                f"{path}: format version {manifest['version']}; this program reads {_VERSION}."
                " Use the version of murp that wrote it."
            )
        expected = {"entities", "relations", *SPLITS}
        if not (set(manifest["rows"]) == set(manifest["sha256"]) == expected):
            raise DataError(f"{path}: does not list {', '.join(sorted(expected))}.")
        return {"name": str(manifest["name"]), "rows": manifest["rows"], "sha256": manifest["sha256"]}
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: is damaged: {error}. Save the graph again.") from error


def _table(path: Path, name: str, manifest: dict[str, Any]) -> pa.Table:
    try:
        intact = sha256(path) == manifest["sha256"][name]
        table = pq.ParquetFile(path).read() if intact else None
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read: {error}. Save the graph again.") from error
    if table is None or len(table) != manifest["rows"][name]:
        raise DataError(f"{path}: is damaged: it is not the file {MANIFEST} describes. Save the graph again.")
    return table


def _triples(table: pa.Table) -> Triples:
    return np.stack([table[role].to_numpy() for role in COLUMNS], axis=1)
