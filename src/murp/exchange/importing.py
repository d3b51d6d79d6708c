"""What an export wrote, back into a run folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from murp import models
from murp.errors import DataError, NotFiniteError
from murp.exchange.contents import Contents, config_of
from murp.exchange.coordinates import restored
from murp.exchange.export import function_of
from murp.export_formats import FORMATS, WHOLE
from murp.files import refuse_strangers
from murp.graph import KnowledgeGraph, Vocabulary
from murp.paths import not_a_file
from murp.runs import Run, folder, load


def read(path: Path) -> Contents:
    """The contents of a file or folder that an export wrote and that holds a whole model."""
    if not path.exists():
        raise DataError(f"there is nothing at {path}. Check the path.")
    if path.is_dir():
        refuse_strangers(path, DataError)
    elif (why := not_a_file(path)) is not None:
        raise DataError(f"{path} {why}.")
    for to, form in FORMATS.items():
        if path.suffix == form.ending if form.ending else (path / form.holds).is_file():
            if form.read is None:
                raise DataError(
                    f"{path} is in the format {to}, which has only the entities' vectors: no relations, no biases. "
                    f"Export to {_either(WHOLE)} to import it again."
                )
            contents: Contents = function_of(form.read)(path)
            return contents
    raise DataError(f"{path} was not written by `murp export`: it is none of {_either(WHOLE)}.")


def _either(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


def import_run(path: Path, out: Path, data: str | None = None) -> Run:
    """Make the run folder ``out`` of an export, ready to be evaluated, asked and continued.

    The graph is the one a hub-folder brings along; other formats need ``data``, what :meth:`KnowledgeGraph.load` takes.
    Its entities and relations must be those of the export, in whatever order. Points in Poincaré coordinates come back
    bit for bit, others up to rounding.
    """
    contents = read(path)
    config = config_of(path, contents.about)
    if data is not None:
        graph = KnowledgeGraph.load(data, seed=config.split_seed, columns=config.columns, header=not config.no_header)
        config = config.replace(data=data)
    elif (path / folder.GRAPH).is_dir():
        graph = KnowledgeGraph.load(path / folder.GRAPH)
    else:
        name = contents.about["graph"].get("name")
        raise DataError(f"{path} holds no graph. Say which one with --data; it was trained on {name!r}.")
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    entities = _order(path, graph.entities, contents.entities)
    relations = _order(path, graph.relations, contents.relations)
    order = {"entity": entities, "relation": torch.cat([relations, relations + len(relations)])}
    order["shared"] = torch.zeros(1, dtype=torch.int64)
    try:
        tables = restored(model, contents.tables, contents.about["coordinates"])
        model.parameters = {t.name: tables[t.name][order[t.of]].contiguous() for t in model.tables}
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"{path} is damaged: its tables do not fit its settings ({error}). Export it again.") from error
    _check(path, model, model.parameters)
    trained = contents.about.get("environment")
    folder.create(out, config, graph, model, contents.about["state"], folder.IMPORTED, trained=trained)
    for name in (folder.METRICS, folder.CALIBRATION):
        if (path / name).is_file():
            shutil.copyfile(path / name, out / name)
    return load(out)


def _order(path: Path, ours: Vocabulary, theirs: Vocabulary) -> Tensor:
    """The row in the export of each thing of the graph."""
    rows = pc.index_in(ours.ids, value_set=theirs.ids)
    missing = pc.index(pc.is_null(rows), True).as_py()
    if missing >= 0:
        raise DataError(
            f"{path} is of another graph: it has no {ours.kind} {ours.id(missing)!r}. "
            "Give the data it was trained on with --data."
        )
    if len(ours) != len(theirs):
        raise DataError(
            f"{path} is of another graph: {len(theirs):,} {ours.kind} ids against {len(ours):,} of the graph. "
            "Give the data it was trained on with --data."
        )
    return torch.from_numpy(rows.cast(pa.int64()).to_numpy(False).copy())


def _check(path: Path, model: models.Model, tables: dict[str, Tensor]) -> None:
    for table in model.tables:
        values, expected = tables[table.name], (model.rows_of(table), *table.shape)
        if tuple(values.shape) != expected or values.dtype != model.dtype:
            raise DataError(
                f"{path} is damaged: table {table.name} is {values.dtype} {tuple(values.shape)}, "
                f"its settings say {model.dtype} {expected}. Export it again."
            )
    if broken := model.broken():
        raise NotFiniteError(
            f"{path} holds NaN, infinity or points outside the ball in {', '.join(broken)}. Export another checkpoint."
        )
