"""Folders of Hugging Face's ``datasets``: what ``save_to_disk`` writes, and the Parquet files of the hub.

They are Arrow and Parquet files with a little JSON beside them, and are read without the package ``datasets``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.files import parse_json
from murp.graph.reading.columns import Columns
from murp.graph.reading.facts import Facts
from murp.graph.reading.parquet import read_table
from murp.graph.reading.streams import open_input
from murp.graph.reading.tables import table_facts

_DICT, _STATE = "dataset_dict.json", "state.json"
_SPLITS = (("train",), ("validation", "valid", "val", "dev"), ("test",))
_PART = re.compile(r"(\w+)-\d{5}-of-\d{5}\.parquet")


def splits(folder: Path) -> list[list[Path]] | None:
    """The files of train, valid and test, or of the one split there is; None if the folder is no such dataset."""
    if (folder / _DICT).is_file():
        names = _json(folder / _DICT).get("splits")
        if not isinstance(names, list) or not all(map(_is_name, names)):
            raise DataError(f"{folder / _DICT}: does not list its splits. Save the dataset again.")
        return _ordered(folder, {name: _saved(folder / name) for name in names})
    if (folder / _STATE).is_file():
        return [_saved(folder)]
    found: dict[str, list[Path]] = {}
    for home in (folder, folder / "data"):
        for path in sorted(home.iterdir()) if home.is_dir() else ():
            if part := _PART.fullmatch(path.name):
                found.setdefault(part[1], []).append(_inside(path, folder))
    return _ordered(folder, found) if found else None


def is_single(folder: Path) -> bool:
    """Whether such a folder holds one split, which is split by a seed."""
    found = splits(folder)
    return found is not None and len(found) == 1


def read(files: Sequence[Path], columns: Columns) -> Facts:
    """The facts of the files of one split; numbers that stand for the names of a class become these names."""
    tables = [_read(path) for path in files]
    if not tables or len({tuple(table.column_names) for table in tables}) > 1:
        raise DataError(f"{files[0].parent if files else 'the dataset'}: has no files, or files of different columns.")
    where = str(files[0]) if len(files) == 1 else str(files[0].parent)
    try:
        table = _with_class_names(pa.concat_tables(tables, promote_options="permissive"), where)
    except pa.ArrowException as error:
        raise DataError(f"{where}: the files do not fit together: {error}.") from error
    facts = table_facts(table, columns, where, files[0].name)
    if not len(table):
        raise DataError(f"{where}: holds no triples.")
    return facts


def _ordered(folder: Path, found: dict[str, list[Path]]) -> list[list[Path]]:
    chosen = [[name for name in found if name.lower() in names] for names in _SPLITS]
    if len(found) == 1:
        return list(found.values())
    if any(len(names) != 1 for names in chosen):
        raise DataError(
            f"{folder}: has the splits {', '.join(found)}; train, validation and test are needed, or one that is split."
        )
    return [found[names[0]] for names in chosen]


def _saved(folder: Path) -> list[Path]:
    listed = _json(folder / _STATE).get("_data_files")
    entries = listed if isinstance(listed, list) else []
    names: list[Any] = [one.get("filename") for one in entries if isinstance(one, dict)]
    if not names or not all(map(_is_name, names)):
        raise DataError(f"{folder / _STATE}: does not list the files of the dataset. Save it again.")
    return [_inside(folder / name, folder) for name in names]


def _is_name(name: object) -> bool:
    """Whether it can be that of a file in the folder."""
    return isinstance(name, str) and Path(name).name == name and name.isprintable()


def _inside(path: Path, folder: Path) -> Path:
    if not path.resolve().is_relative_to(folder.resolve()):
        raise DataError(f"{path} is a symbolic link that leads out of its folder. Put the file itself there.")
    return path


def _json(path: Path) -> dict[str, Any]:
    try:
        value = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}. Save the dataset again.") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}: is not a JSON object. Save the dataset again.")
    return value


def _read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return read_table(path)
    try:
        with open_input(path) as stream:
            table = pa.ipc.open_stream(stream).read_all()
        table.validate(full=True)
        return table
    except (pa.ArrowException, ValueError, MemoryError, OSError) as error:
        raise DataError(f"{path}: cannot be read as Arrow: {error}. Save the dataset again.") from error


def _with_class_names(table: pa.Table, where: str) -> pa.Table:
    try:
        info = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
        features = info.get("info", {}).get("features", {})
        labels = {name: one["names"] for name, one in features.items() if one.get("_type") == "ClassLabel"}
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return table
    for name, names in labels.items():
        place = table.schema.get_field_index(name)
        if place < 0 or not pa.types.is_integer(table.column(place).type) or not all(isinstance(n, str) for n in names):
            continue
        column = table.column(place).cast(pa.int64())
        if pc.any(pc.or_(pc.less(column, 0), pc.greater_equal(column, len(names)))).as_py():
            raise DataError(f"{where}: column {name!r} holds numbers that its {len(names)} classes do not have.")
        table = table.set_column(place, name, pa.array(names, pa.large_string()).take(column.combine_chunks()))
    return table
