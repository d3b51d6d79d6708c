"""Starting a run and continuing one."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

from murp import models
from murp.config import Config
from murp.errors import ConfigError, MurpError
from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.runs import Run, folder
from murp.runs.run import load, load_model, resolve_device
from murp.training.loop import fit, stopped_early
from murp.training.progress import Silent, for_terminal
from murp.training.state import State


def train(
    graph: KnowledgeGraph | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    progress: Silent | None = None,
    **settings: Any,
) -> Run:
    """Train a model on a graph and return the run with its best weights.

    ``graph`` is a loaded graph, or what :meth:`KnowledgeGraph.load` takes. ``out`` is the run
    folder, which must not exist yet. The other arguments are settings of :class:`murp.Config`:
    ``model="murp"``, ``dim=40``, ``epochs=100``, …
    """
    if isinstance(graph, KnowledgeGraph):
        settings = {"data": graph.source or graph.name, **settings}
    else:
        settings = {"data": os.fspath(graph), **settings}
    config = Config.from_mapping(settings, "train")
    if not isinstance(graph, KnowledgeGraph):
        graph = KnowledgeGraph.load(config.data, data_dir=config.data_dir or None, seed=config.split_seed)
    _check_usable(graph, config)
    path, state, device = Path(out), State(), resolve_device(config.device)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(config.seed).to(device)
    folder.create(path, config, graph, model, state.to_dict())
    fit(path, config, graph, model, state, progress or for_terminal())
    return load(path, device=config.device)


def resume(path: str | os.PathLike[str], *, epochs: int | None = None, progress: Silent | None = None) -> Run:
    """Continue a run from its newest checkpoint, bit for bit as if it had never stopped (on the CPU).

    ``epochs`` extends a run whose learning rate does not depend on its length; every other setting
    is the run's own.
    """
    path = Path(path)
    config, graph = folder.read_config(path), folder.read_graph(path)
    if epochs is not None and epochs != config.epochs:
        if config.lr_schedule != "constant":
            raise ConfigError(
                f"the number of epochs cannot change on resuming: the {config.lr_schedule} schedule depends on it."
            )
        config = dataclasses.replace(config, epochs=epochs)
    model, values = load_model(path / folder.LAST, config, graph)
    state = State.from_dict(values)
    if epochs is not None:
        write_text(path / folder.CONFIG, config.to_toml())
    folder.rewind_metrics(path, state.epoch)
    if state.epoch < config.epochs and not stopped_early(config, state):
        model.to(resolve_device(config.device))
        fit(path, config, graph, model, state, progress or for_terminal())
    return load(path, device=config.device)


def _check_usable(graph: KnowledgeGraph, config: Config) -> None:
    if len(graph.train) == 0:
        raise MurpError(f"{graph.name} has no training triples.")
    if config.validate_every and len(graph.valid) == 0:
        raise MurpError(f"{graph.name} has no valid split to validate on: set validate_every to 0.")
