"""One safetensors file: a tensor a table, the description in its metadata (``murp``), ids and names as bytes.

The format holds no strings but metadata, whose size it limits, so ``entity_ids``, ``entity_names``, ``relation_ids``
and ``relation_names`` are tensors of bytes: UTF-8, a JSON list.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from murp.exchange.contents import Contents, checked, telling_damage
from murp.files import parse_json, replacing
from murp.graph import Vocabulary
from murp.runs import Run


def write(contents: Contents, run: Run, path: Path) -> None:
    """Write ``path``, whole or not at all."""
    tensors = {name: values.contiguous() for name, values in contents.tables.items()}
    for vocabulary in (contents.entities, contents.relations):
        tensors[f"{vocabulary.kind}_ids"] = _bytes(vocabulary.ids.to_pylist())
        if vocabulary.names is not None:
            tensors[f"{vocabulary.kind}_names"] = _bytes(vocabulary.names.to_pylist())
    with replacing(path) as part:
        try:
            safetensors.torch.save_file(tensors, part, {"murp": contents.about_json()})
        except SafetensorError as error:
            raise OSError(str(error)) from error


def read(path: Path) -> Contents:
    """Inverse of :func:`write`."""
    with telling_damage(path):
        with safetensors.safe_open(path, framework="pt") as file:
            about = checked(path, parse_json((file.metadata() or {}).get("murp", "null")))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
        tables = {name: tensors[name] for name in about["tables"]}
        vocabularies = [_vocabulary(kind, tensors) for kind in ("entity", "relation")]
    return Contents(about, tables, *vocabularies)


def _bytes(strings: list[str | None]) -> Tensor:
    return torch.from_numpy(np.frombuffer(json.dumps(strings, ensure_ascii=False).encode(), dtype=np.uint8).copy())


def _vocabulary(kind: str, tensors: dict[str, Tensor]) -> Vocabulary:
    columns = [tensors.get(f"{kind}_{column}") for column in ("ids", "names")]
    ids, names = (None if column is None else parse_json(column.numpy().tobytes()) for column in columns)
    if ids is None:
        raise KeyError(f"{kind}_ids")
    return Vocabulary(kind, ids, names)
