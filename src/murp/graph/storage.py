"""A graph in coded form on disk: how run folders keep theirs.

``graph.json`` (format, name, counts, sha256 of the other files), ``entities.parquet`` and
``relations.parquet`` (id and, where known, name and gloss, in index order), ``train.parquet``,
``valid.parquet`` and ``test.parquet`` (int32 head, relation, tail). What is read back is what was saved, row
for row, or it is an error.

That is version 1. A large graph is kept as version 2: ``entities.arrow``, ``relations.arrow``, ``train.npy`` and so on,
which are mapped into memory and not read, so that a graph of any size is there in seconds. Their sizes are checked, and
every number and text in them for what would break other code; their checksums only by :func:`verify`.
"""

from __future__ import annotations

import hashlib
import json
import os
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
from murp.graph import arrays
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Triples
from murp.graph.names.vocabulary import Vocabulary
from murp.graph.reading.columns import COLUMNS
from murp.graph.reading.parquet import read_table

MANIFEST = "graph.json"
_FORMAT, _VERSION, _MAPPED = "murp graph", 1, 2
LARGE_FACTS, LARGE_VOCABULARY = 1 << 24, 1 << 22  # from so many on a graph is mapped
_ROWS_AT_ONCE = 1 << 22


def save(graph: KnowledgeGraph, folder: Path) -> None:
    """Write ``graph`` into a new ``folder``; a folder that exists is an error."""
    if len(graph) >= LARGE_FACTS or graph.num_entities >= LARGE_VOCABULARY:
        save_mapped(graph, folder)
        return
    tables = {"entities": graph.entities.table(), "relations": graph.relations.table()}
    for split in SPLITS:
        triples = graph.split(split)
        tables[split] = pa.table({role: triples[:, i] for i, role in enumerate(COLUMNS)})
    with new_folder(folder, DataError) as part:
        for name, table in tables.items():
            pq.write_table(table, part / f"{name}.parquet", compression="zstd")
        rows = {name: len(table) for name, table in tables.items()}
        _write_manifest(part, graph.name, _VERSION, rows, {name: part / f"{name}.parquet" for name in rows})


def save_mapped(graph: KnowledgeGraph, folder: Path) -> None:
    """The same in the form that is mapped."""
    with new_folder(folder, DataError) as part:
        for split in SPLITS:
            arrays.save(part / f"{split}.npy", graph.split(split).astype(np.int32, copy=False))
        finish_mapped(part, graph.name, graph.entities, graph.relations, [len(graph.split(split)) for split in SPLITS])


def finish_mapped(part: Path, name: str, entities: Vocabulary, relations: Vocabulary, facts: Sequence[int]) -> None:
    """Write vocabularies and manifest beside the facts of each split that lie in ``part`` already."""
    rows = dict(zip(SPLITS, facts, strict=True), entities=len(entities), relations=len(relations))
    for kind, vocabulary in (("entities", entities), ("relations", relations)):
        table = vocabulary.table()
        with pa.OSFile(str(part / f"{kind}.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=_ROWS_AT_ONCE)
    _write_manifest(part, name, _MAPPED, rows, {name: _mapped_file(part, name) for name in rows})


def _mapped_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.{'npy' if name in SPLITS else 'arrow'}"


def _write_manifest(part: Path, name: str, version: int, rows: dict[str, int], files: dict[str, Path]) -> None:
    manifest = {"format": _FORMAT, "version": version, "name": name, "rows": rows}
    if version == _MAPPED:
        manifest["bytes"] = {name: path.stat().st_size for name, path in files.items()}
    manifest["sha256"] = {name: sha256(path) for name, path in files.items()}
    write_text(part / MANIFEST, json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")


def is_saved(folder: Path) -> bool:
    """Whether ``folder`` looks like one that :func:`save` wrote."""
    return (folder / MANIFEST).is_file()


def read_saved(folder: Path) -> KnowledgeGraph:
    """The graph that :func:`save` wrote; a DataError if a file is not as it was written."""
    refuse_strangers(folder, DataError)
    manifest = _manifest(folder / MANIFEST)
    if manifest["version"] == _MAPPED:
        return _read_mapped(folder, manifest)
    files = {name: folder / f"{name}.parquet" for name in manifest["rows"]}
    tables = {name: _table(path, name, manifest) for name, path in files.items()}
    entities, relations = (_vocabulary(files[name], name, tables[name]) for name in ("entities", "relations"))
    bounds = (len(entities), len(relations), len(entities))
    train, valid, test = (_triples(files[split], tables[split], bounds) for split in SPLITS)
    return KnowledgeGraph(manifest["name"], entities, relations, train, valid, test)


def verify(folder: str | os.PathLike[str]) -> None:
    """Compare the files of a graph with their checksums, all of them from beginning to end."""
    folder = Path(folder)
    manifest = _manifest(folder / MANIFEST)
    for name, expected in manifest["sha256"].items():
        path = _mapped_file(folder, name) if manifest["version"] == _MAPPED else folder / f"{name}.parquet"
        try:
            found = sha256(path)
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error}. Save the graph again.") from error
        if found != expected:
            raise _not_as_described(path)


def _read_mapped(folder: Path, manifest: dict[str, Any]) -> KnowledgeGraph:
    for name, size in manifest["bytes"].items():
        path = _mapped_file(folder, name)
        try:
            found = path.stat().st_size
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error}. Save the graph again.") from error
        if found != size:
            raise _not_as_described(path)
    entities, relations = (_mapped_vocabulary(folder, kind, manifest) for kind in ("entities", "relations"))
    bounds = (len(entities), len(relations), len(entities))
    train, valid, test = (_mapped_triples(folder, split, manifest, bounds) for split in SPLITS)
    return KnowledgeGraph(manifest["name"], entities, relations, train, valid, test)


def _not_as_described(path: Path) -> DataError:
    return DataError(f"{path}: is damaged: it is not the file {MANIFEST} describes. Save the graph again.")


def _mapped_vocabulary(folder: Path, kind: str, manifest: dict[str, Any]) -> Vocabulary:
    path = _mapped_file(folder, kind)
    try:
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        table.validate(full=True)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise DataError(f"{path}: cannot be read as Arrow: {error}. Save the graph again.") from error
    if len(table) != manifest["rows"][kind]:
        raise _not_as_described(path)
    return _vocabulary(path, kind, table, distinct=False)


def _mapped_triples(folder: Path, split: str, manifest: dict[str, Any], bounds: Sequence[int]) -> Triples:
    path, rows = _mapped_file(folder, split), manifest["rows"][split]
    if not rows:
        return np.zeros((0, 3), np.int32)
    try:
        # Copied where written to, so that PyTorch need not warn of what may not be written.
        mapped: Triples = np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
    except (ValueError, OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {error}. Save the graph again.") from error
    if mapped.shape != (rows, 3) or mapped.dtype != np.int32:
        raise _not_as_described(path)
    for start in range(0, rows, _ROWS_AT_ONCE):
        block = mapped[start : start + _ROWS_AT_ONCE]
        for i, (role, bound) in enumerate(zip(COLUMNS, bounds, strict=True)):
            if not 0 <= block[:, i].min() <= block[:, i].max() < bound:
                raise _outside(path, role, block[:, i], bound, start)
    return mapped


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = parse_json(path.read_text(encoding="utf-8"))
        if manifest["format"] != _FORMAT:
            raise DataError(f"{path}: the format is {manifest['format']!r} and not {_FORMAT!r}.")
        version = manifest["version"]
        if version not in (_VERSION, _MAPPED):
            raise DataError(
                f"{path}: format version {version}; this program reads {_VERSION} and {_MAPPED}."
                " Use the version of murp that wrote it."
            )
        expected = {"entities", "relations", *SPLITS}
        if not (set(manifest["rows"]) == set(manifest["sha256"]) == expected):
            raise DataError(f"{path}: does not list {', '.join(sorted(expected))}.")
        sizes = {name: int(manifest["bytes"][name]) for name in expected} if version == _MAPPED else {}
        known = {"version": version, "name": str(manifest["name"]), "bytes": sizes}
        return known | {"rows": manifest["rows"], "sha256": manifest["sha256"]}
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
        raise _not_as_described(path)
    return table


def _vocabulary(path: Path, kind: str, table: pa.Table, *, distinct: bool = True) -> Vocabulary:
    """The vocabulary of a table; ``distinct``: look whether ids come once, which takes memory for all of them."""
    texts = {column: table[column] for column in ("id", "name", "gloss") if column in table.column_names}
    for column, values in texts.items():
        if values.type not in (pa.string(), pa.large_string()):
            raise DataError(f"{path}: column {column!r} holds {values.type} and not strings. Save the graph again.")
    if "id" not in texts or texts["id"].null_count or (distinct and len(pc.unique(texts["id"])) < len(table)):
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
            raise _outside(path, role, values, bound)
        columns.append(values)
    return np.stack(columns, axis=1)


def _outside(path: Path, role: str, values: NDArray[np.int32], bound: int, start: int = 0) -> DataError:
    outside = int(np.flatnonzero((values < 0) | (values >= bound))[0])
    return DataError(
        f"{path}, row {start + outside + 1}: the {role} is {values[outside]}, and there are {bound:,} of its kind. "
        "Save the graph again."
    )
