"""NumPy's .npz: an array a table, ids and names as arrays of strings, the description as JSON in ``about``."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from murp.exchange.contents import Contents, checked, telling_damage
from murp.files import parse_json, replacing
from murp.graph import Vocabulary
from murp.graph.reading.streams import most_unpacked, too_much_unpacked
from murp.runs import Run


def write(contents: Contents, run: Run, path: Path) -> None:
    """Write ``path``, whole or not at all; no pickle is involved."""
    arrays: dict[str, Any] = {name: values.numpy() for name, values in contents.tables.items()}
    for vocabulary in (contents.entities, contents.relations):
        arrays[f"{vocabulary.kind}_ids"] = np.array(vocabulary.ids.to_pylist(), dtype=np.str_)
        if vocabulary.names is not None:
            arrays[f"{vocabulary.kind}_names"] = np.array(vocabulary.names.fill_null("").to_pylist(), dtype=np.str_)
    arrays["about"] = np.array(contents.about_json())
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)


def read(path: Path) -> Contents:
    """Inverse of :func:`write`."""
    with telling_damage(path):
        most = most_unpacked(path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            if sum(member.file_size for member in archive.infolist()) > most:
                raise too_much_unpacked(path, most)
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = checked(path, parse_json(str(arrays.get("about", "null"))))
        tables = {name: torch.from_numpy(arrays[name]) for name in about["tables"]}
        vocabularies = [_vocabulary(kind, arrays) for kind in ("entity", "relation")]
    return Contents(about, tables, *vocabularies)


def _vocabulary(kind: str, arrays: dict[str, Any]) -> Vocabulary:
    names = arrays.get(f"{kind}_names")
    return Vocabulary(
        kind, arrays[f"{kind}_ids"].tolist(), None if names is None else [n or None for n in names.tolist()]
    )
