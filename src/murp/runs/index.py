"""The index of a run, kept in its folder and bound to its weights.

index.json      format, the checksum and epoch of the weights it was made of, recall, and the sizes of the other files
order.npy, starts.npy
                which entities each cell has; see :class:`murp.prediction.approximate.Index`
table.NAME.npy, centre.NAME.npy
                the model's tables of objects in that order, and the rows of the cells' centres
panels.npy, numbers.npy, first.npy
                in place of the tables for the published models: see :mod:`murp.prediction.packed_cells`

The tables are mapped into memory. An index of other weights is refused: its answers would be those of another model.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.commands import command
from murp.errors import RunError, why_not
from murp.files import fields, new_folder, parse_json, refuse_strangers, write_text
from murp.graph.arrays import save
from murp.models import Model
from murp.prediction.approximate import Index
from murp.prediction.packed_cells import PackedCells, suits
from murp.runs.folder import INDEX

ABOUT = "index.json"
FORMAT, VERSION = "murp index", 1
_PACKED = ("panels", "numbers", "first")
_FIGURES = {"looks": int, "looks_near": int, "recall": int | float, "recall_near": int | float}


def write(run: Path, index: Index, weights: str, epoch: int) -> Path:
    """Keep an index in the folder of a run, in place of one that is there."""
    home = run / INDEX
    spare = run / f".{INDEX}.new"
    try:
        shutil.rmtree(spare, ignore_errors=True)
        with new_folder(spare, RunError) as part:
            arrays: dict[str, Any] = {"order": index.order, "starts": index.starts}
            arrays |= {f"table.{name}": values.numpy() for name, values in index.tables.items()}
            arrays |= {f"centre.{name}": values.numpy() for name, values in index.centres.items()}
            if index.packed is not None:
                arrays |= {name: getattr(index.packed, name) for name in _PACKED}
            for name, values in arrays.items():
                save(part / f"{name}.npy", values)
            about = {"format": FORMAT, "version": VERSION, "weights": weights, "epoch": epoch}
            about |= {name: getattr(index, name) for name in _FIGURES}
            about["bytes"] = {name: (part / f"{name}.npy").stat().st_size for name in arrays}
            write_text(part / ABOUT, json.dumps(about, indent=2) + "\n")
        shutil.rmtree(home, ignore_errors=True)
        spare.replace(home)
    except OSError as error:
        raise RunError(
            f"could not write {home}: {why_not(error)}. Free some space, then make the index again."
        ) from error
    return home


def read(run: Path, model: Model, weights: str) -> Index:
    """The index of a run for these ``weights``; a RunError if there is none, or one of others."""
    home = run / INDEX
    again = f"Run `{command('index', run)}`."
    if not home.is_dir():
        raise RunError(f"{run} has no index for approximate answers. {again}")
    refuse_strangers(home, RunError)
    try:
        about = parse_json((home / ABOUT).read_text(encoding="utf-8"))
        kinds = {"format": str, "version": int, "weights": str, "epoch": int, "bytes": dict, **_FIGURES}
        about = fields(about, kinds)
        if (about["format"], about["version"]) != (FORMAT, VERSION):
            raise ValueError(f"it has version {about['version']!r}, and this program reads {VERSION}")
        if about["weights"] == weights:
            return _index(home, about, model)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunError(f"{home} cannot be read: {error}. {again}") from error
    raise RunError(
        f"{home} was made from other weights (epoch {about['epoch']}), so its answers would be wrong. {again}"
    )


def _index(home: Path, about: dict[str, Any], model: Model) -> Index:
    for name, size in about["bytes"].items():
        if (found := (home / f"{name}.npy").stat().st_size) != size:
            raise ValueError(f"{name}.npy has {found:,} bytes and not {size:,}")
    order, starts = _array(home, "order"), _array(home, "starts")
    cells, count = len(starts) - 1, model.num_entities
    if order.shape != (count,) or order.dtype != np.int32 or cells < 1 or (np.diff(starts) < 0).any():
        raise ValueError("its cells do not fit the entities of the run")
    if (starts[0], starts[-1]) != (0, count) or order.min() < 0 or order.max() >= count:
        raise ValueError("its cells do not fit the entities of the run")
    kept: dict[str, dict[str, Tensor]] = {"table": {}, "centre": {}}
    packed = _packed(home, model, starts) if suits(model) else None
    kinds = [("centre", cells), *([] if packed is not None else [("table", count)])]
    for name, values in model.rows("object").items():
        for kind, rows in kinds:
            read_back = torch.from_numpy(_array(home, f"{kind}.{name}"))
            if read_back.shape != (rows, *values.shape[1:]) or read_back.dtype != values.dtype:
                raise ValueError(f"{kind}.{name}.npy does not fit the tables of the run")
            kept[kind][name] = read_back
    figures = {name: about[name] for name in _FIGURES}
    if not (1 <= figures["looks"] <= cells and 1 <= figures["looks_near"] <= cells):
        raise ValueError("it looks into more cells than there are")
    return Index(order, starts, kept["table"], kept["centre"], **figures, packed=packed)


def _packed(home: Path, model: Model, starts: NDArray[np.int64]) -> PackedCells:
    found = PackedCells(*(_array(home, name) for name in _PACKED))
    used = -(-np.diff(starts) // found.panels.shape[2])
    values = model.parameters["entity"]
    fits = found.panels.shape[:2] == (used.sum(), values.shape[1]) and found.panels.itemsize == values.itemsize
    fits = fits and found.numbers.shape[1] == found.panels.shape[0] * found.panels.shape[2]
    if not fits or not np.array_equal(found.first, np.cumsum(used) - used):
        raise ValueError("its panels do not fit the tables of the run")
    return found


def _array(home: Path, name: str) -> NDArray[Any]:
    return np.asarray(np.load(home / f"{name}.npy", mmap_mode="c", allow_pickle=False))
