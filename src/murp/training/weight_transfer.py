"""Copy the weights of one run into the model of another, matched by id; used by `murp extend` and ``init_from``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from murp.config import Config
from murp.errors import ConfigError, RunError
from murp.geometry import Geometry
from murp.graph import Indices, KnowledgeGraph, Vocabulary
from murp.models import Model
from murp.models.rounding import rounded
from murp.optimizers.optimizer import TABLES
from murp.runs import Run, checkpoint, folder

# Settings of a model that say how it is trained, not what its numbers mean.
OF_TRAINING = (
    "initial_scale", "query_dropout", "entity_dropout", "input_dropout", "matrix_dropout", "picture_dropout"
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Transferred:
    """Which rows were copied from another run: entities (N) and relations with their reciprocals (2R)."""

    entities: Tensor
    relations: Tensor


def refuse_other(source: Run, config: Config) -> None:
    """Raise if the weights of ``source`` do not fit a model with these settings."""
    there, here = (
        {"model": one.model, "dtype": one.dtype, **one.settings_of("model")} for one in (source.config, config)
    )
    other = [name for name in {**here, **there} if name not in OF_TRAINING and there.get(name) != here.get(name)]
    if other:
        shown = ", ".join(f"{name}: {there.get(name, 'none')} there, {here.get(name, 'none')} here" for name in other)
        raise ConfigError(
            f"the weights of {source.path} do not fit this run ({shown}). Give the same model and the same settings of "
            "the model, or start from another run."
        )


def transfer(source: Run, model: Model, graph: KnowledgeGraph) -> Transferred:
    """Copy into ``model`` the rows of all entities and relations that ``source`` also has, by id, and the shared
    tables.

    The other rows keep their values. On many ranks, ``model`` holds only this rank's rows of the entities; the result
    covers all entities.
    """
    where = _all_rows(source, graph)
    for table in model.tables:
        values, own = source.model.parameters[table.name], model.parameters[table.name]
        if values.shape[1:] != own.shape[1:]:
            raise RunError(
                f"{source.path}: the table {table.name} has rows of {tuple(values.shape[1:])} numbers, and this run's "
                f"have {tuple(own.shape[1:])}: they do not fit."
            )
        rows, first = where[table.of], model.first_row if table.of == "entity" else 0
        _copy(values, own, rows[first : first + len(own)], table.geometry)
    return Transferred(where["entity"] >= 0, where["relation"] >= 0)


def transfer_optimizer(source: Run, model: Model, graph: KnowledgeGraph) -> dict[str, Tensor]:
    """The optimizer's tables in the newest checkpoint of ``source`` for the rows of ``model``; new rows begin at 0.

    Empty if that checkpoint cannot be read or has no such tables: an imported run, and every run by SGD.
    """
    try:
        stored, _ = checkpoint.load(source.path / folder.LAST)
    except RunError:
        return {}
    where = _all_rows(source, graph)
    found = {}
    for table in model.tables:
        before = f"{TABLES}{table.name}."
        for name, values in stored.items():
            if name.startswith(before):
                found[name] = values.new_zeros(model.rows_of(table), *values.shape[1:])
                _copy(values, found[name], where[table.of])
    return found


def _all_rows(source: Run, graph: KnowledgeGraph) -> dict[str, Tensor]:
    """For the rows of each kind of table of a model of ``graph``: their numbers in ``source``; -1 for new rows."""
    relations = _rows(graph.relations, source.graph.relations)
    both = np.where(relations < 0, -1, relations + source.graph.num_relations)
    where = {
        "entity": _rows(graph.entities, source.graph.entities),
        "relation": np.concatenate([relations, both]),
        "shared": np.zeros(1, np.int64),
    }
    return {kind: torch.from_numpy(rows) for kind, rows in where.items()}


def _copy(values: Tensor, own: Tensor, rows: Tensor, points: Geometry | None = None) -> None:
    """Copy the rows of ``values`` that ``own`` also has to their places; ``points`` are rounded in their space."""
    known = rows >= 0
    found = values[rows[known].to(values.device)]
    found = found if points is None else rounded(found, own.dtype, points)
    own[known.to(own.device)] = found.to(own.device)


def _rows(ours: Vocabulary, theirs: Vocabulary) -> Indices:
    """The number in ``theirs`` of each entry of ``ours``; -1 if it is not there."""
    found = pc.fill_null(pc.index_in(ours.ids, value_set=theirs.ids), -1)
    return np.array(found.cast(pa.int64()).to_numpy(False))
