"""A folder of Parquet files: a row an entity, and one row per relation and its reciprocal; what all share in one row.

``entities.parquet`` has id, name and gloss where known, vector, and the biases; ``relations.parquet`` id, name,
reciprocal, and the relation's parameters; ``shared.parquet``, where the model has such, the parameters of no entity and
no relation. A matrix is the list of its numbers, row by row. All carry the
description as JSON in the schema's metadata (``murp``).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from murp.errors import DataError
from murp.exchange.contents import Contents, checked, telling_damage
from murp.export_formats import FORMATS
from murp.files import new_folder, parse_json
from murp.graph import Vocabulary
from murp.graph.reading.parquet import read_table
from murp.runs import Run

ENTITIES, RELATIONS, SHARED = FORMATS["parquet"].holds, "relations.parquet", "shared.parquet"
_COLUMN = {"entity": "vector"}


def write(contents: Contents, run: Run, path: Path) -> None:
    """Make the folder ``path``, whole or not at all."""
    described = {"murp": contents.about_json()}
    relations = contents.relations.table()
    reciprocal = pa.array(np.arange(2 * len(relations)) >= len(relations))
    files = {
        ENTITIES: _with_tables(contents.entities.table(), contents.of("entity")),
        RELATIONS: _with_tables(
            pa.concat_tables([relations, relations]).append_column("reciprocal", reciprocal), contents.of("relation")
        ),
    }
    if shared := contents.of("shared"):
        files[SHARED] = _with_tables(pa.table({"row": [0]}), shared)
    with new_folder(path, DataError) as part:
        for name, table in files.items():
            pq.write_table(table.replace_schema_metadata(described), part / name, compression="zstd")


def read(path: Path) -> Contents:
    """Inverse of :func:`write`."""
    with telling_damage(path):
        entities, relations = (read_table(path / name) for name in (ENTITIES, RELATIONS))
        about = checked(path, parse_json((entities.schema.metadata or {}).get(b"murp", b"null")))
        files = {"entity": entities, "relation": relations}
        if any(table["of"] == "shared" for table in about["tables"].values()):
            files["shared"] = read_table(path / SHARED)
        tables = {
            name: _tensor(files[table["of"]][_COLUMN.get(name, name)], table) for name, table in about["tables"].items()
        }
        firsts = relations.slice(0, len(relations) // 2)
        vocabularies = [_vocabulary("entity", entities), _vocabulary("relation", firsts)]
    return Contents(about, tables, *vocabularies)


def _with_tables(table: pa.Table, tables: dict[str, Tensor]) -> pa.Table:
    for name, values in tables.items():
        column = pa.array(values.numpy().reshape(-1))
        if values.dim() > 1:
            column = pa.FixedSizeListArray.from_arrays(column, math.prod(values.shape[1:]))
        table = table.append_column(_COLUMN.get(name, name), column)
    return table


def _tensor(column: pa.ChunkedArray, table: dict[str, Any]) -> Tensor:
    values = column.combine_chunks()
    flat = values.flatten() if pa.types.is_fixed_size_list(values.type) else values
    return torch.from_numpy(flat.to_numpy(False).reshape(table["shape"]).copy())


def _vocabulary(kind: str, table: pa.Table) -> Vocabulary:
    return Vocabulary.from_table(kind, table.select([c for c in ("id", "name", "gloss") if c in table.column_names]))
