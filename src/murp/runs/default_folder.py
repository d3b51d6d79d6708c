"""The folder of a run if none is given, and whether a folder has the wanted run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import numpy as np

from murp.config import Config
from murp.errors import MurpError
from murp.graph import SPLITS, KnowledgeGraph
from murp.runs import folder

HOME = Path("runs")
# Where a run was trained changes nothing of what it is.
OF_THE_MACHINE = ("device", "engine", "slices")


def unused_folder(config: Config) -> Path:
    """A folder under ``runs/`` that is not there yet, named by data, model, dimension and seed."""
    return next(path for path in numbered(run_name(config)) if not path.exists())


def own_folder(config: Config, graph: KnowledgeGraph) -> Path:
    """The same, or the folder of that name that already has this run: the same call gives the same folder."""
    return first_fitting(run_name(config), lambda path: difference(path, config, graph) is None)


def first_fitting(name: str, fits: Callable[[Path], bool]) -> Path:
    """The first of ``runs/name``, ``runs/name-2``, … that is not there yet, or ``fits``."""
    for path in numbered(name):
        try:
            if not path.exists() or fits(path):
                return path
        except MurpError:
            continue  # no run, or a damaged one
    raise AssertionError("there is always another number")


def numbered(name: str) -> Iterator[Path]:
    """``runs/name``, ``runs/name-2``, ``runs/name-3``, …"""
    return (HOME / (name if number == 1 else f"{name}-{number}") for number in count(1))


def run_name(config: Config) -> str:
    """``wordnet-mini-murp-d40-seed0``."""
    model = config.model.replace(":", ".")  # of a class of your own; not every system takes a colon
    return f"{data_name(config)}-{model}-d{config.dim}-seed{config.seed}"


def data_name(config: Config) -> str:
    """What the data is called, without folders and endings."""
    return os.path.basename(os.path.abspath(config.data)).lstrip(".").split(".")[0] or "data"


def difference(path: Path, config: Config, graph: KnowledgeGraph) -> str | None:
    """In what the run folder at ``path`` differs from a run with these settings on this graph; None: in nothing."""
    stored, asked = folder.read_config(path).to_dict(), config.to_dict()
    names = [name for name in {**asked, **stored} if name not in OF_THE_MACHINE]
    other = [name for name in names if stored.get(name) != asked.get(name)]
    if other:
        shown = ", ".join(
            f"{name}: {stored.get(name, 'none')} there, {asked.get(name, 'none')} wanted" for name in other
        )
        return f"a run with other settings ({shown})"
    known = folder.read_graph(path)
    same_names = known.entities == graph.entities and known.relations == graph.relations
    if not same_names or not all(np.array_equal(known.split(name), graph.split(name)) for name in SPLITS):
        return f"a run on other data: {config.data} has changed since"
    return None
