"""A graph in coded form on disk: how run folders keep theirs.

``graph.json`` (format, name, counts, sha256 of the other files), ``entities.parquet`` and
``relations.parquet`` (id and, where known, name and gloss, in index order), ``train.parquet``,
``valid.parquet`` and ``test.parquet`` (int32 head, relation, tail). What is read back is what was saved, row
for row, or it is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from murp.errors import DataError
from murp.files import new_folder, parse_json, refuse_strangers, write_text
from murp.graph.columns import COLUMNS
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Triples
from murp.graph.parquet import read_table
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
    refuse_strangers(folder, DataError)
    manifest = _manifest(folder / MANIFEST)
    files = {name: folder / f"{name}.parquet" for name in manifest["rows"]}
    tables = {name: _table(path, name, manifest) for name, path in files.items()}
    entities, relations = (_vocabulary(files[name], name, tables[name]) for name in ("entities", "relations"))
    bounds = (len(entities), len(relations), len(entities))
    train, valid, test = (_triples(files[split], tables[split], bounds) for split in SPLITS)
    return KnowledgeGraph(manifest["name"], entities, relations, train, valid, test)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
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
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}. Save the graph again.") from error
    table = read_table(path) if intact else None
    if table is None or len(table) != manifest["rows"][name]:
        raise DataError(f"{path}: is damaged: it is not the file {MANIFEST} describes. Save the graph again.")
    return table


def _vocabulary(path: Path, kind: str, table: pa.Table) -> Vocabulary:
    texts = {column: table[column] for column in ("id", "name", "gloss") if column in table.column_names}
    for column, values in texts.items():
        if values.type not in (pa.string(), pa.large_string()):
            raise DataError(f"{path}: column {column!r} holds {values.type} and not strings. Save the graph again.")
    if "id" not in texts or texts["id"].null_count or len(pc.unique(texts["id"])) < len(table):
        raise DataError(f"{path}: is damaged: {kind} do not each have an id of their own. Save the graph again.")
    return Vocabulary.from_table("entity" if kind == "entities" else "relation", pa.table(texts))


def _triples(path: Path, table: pa.Table, bounds: Sequence[int]) -> Triples:
    """The three columns, each of indices from 0 up to its bound."""
    columns = []
    for role, bound in zip(COLUMNS, bounds, strict=True):
        column = table[role] if table.column_names.count(role) == 1 else None
        if column is None or column.type != pa.int32() or column.null_count:
            raise DataError(f"{path}: has no column {role!r} of 32-bit integers. Save the graph again.")
        values: NDArray[np.int32] = column.to_numpy()
        if len(values) and not 0 <= values.min() <= values.max() < bound:
            outside = int(np.flatnonzero((values < 0) | (values >= bound))[0])
            raise DataError(
                f"{path}, row {outside + 1}: the {role} is {values[outside]}, and there are {bound:,} of its kind. "
                "Save the graph again."
            )
        columns.append(values)
    return np.stack(columns, axis=1)
