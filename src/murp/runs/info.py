"""What a run folder says of itself: settings, graph, progress, parameters and environment."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murp.config import Config
from murp.errors import RunError, printable
from murp.graph import KnowledgeGraph
from murp.graph.names.vocabulary import counted
from murp.optimizers.optimizer import TABLES
from murp.rows import html_table
from murp.runs import checkpoint, folder
from murp.runs.settings import checked

# Settings of a model that say nothing of what it is made of.
COMMON = ("dim", "initial_scale", "query_dropout", "entity_dropout", "curvature")


@dataclass(frozen=True, eq=False)
class Info:
    """``state`` is that of the newest checkpoint, ``parameters`` and ``optimizer`` the shapes of its tables.

    ``files``: how many files it has.
    """

    path: Path
    config: Config
    graph: KnowledgeGraph
    state: dict[str, Any]
    parameters: dict[str, list[int]]
    optimizer: dict[str, list[int]]
    environment: dict[str, Any]
    files: int = 1

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "run": str(self.path),
            "config": self.config.to_dict(),
            "graph": {"name": self.graph.name, **self.graph.counts()},
            "state": self.state,
            "parameters": self.parameters,
            "optimizer": self.optimizer,
            "files": self.files,
            "environment": self.environment,
        }

    def lines(self) -> dict[str, str]:
        """For people: what each line is of, and what it says."""
        config, state, trained = self.config, self.state, folder.training_environment(self.path)
        shapes = ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in self.parameters.items())
        own = config.settings_of("model")
        lines = {
            "run": str(self.path),
            "model": f"{config.model} d={config.dim}, {config.dtype}{_stored(config)}",
            "parts": ", ".join(f"{name} {value}" for name, value in own.items() if name not in COMMON) or "none",
            "objective": _part(config, "objective"),
            "corruption": _part(config, "corruption")
            if "corruption" in config.parts
            else f"none: {config.objective} compares with all entities, and draws no negatives",
            "regularizer": _part(config, "regularizer"),
            "graph": f"{self.graph.name}: {counted(self.graph.counts())}",
            "parameters": f"{_numbers(self.parameters):,}: {shapes}",
            "optimizer": f"{config.optimizer}, lr {config.lr:g}"
            + (f", which keeps {_numbers(self.optimizer):,} numbers" if self.optimizer else ""),
            "progress": f"epoch {state['epoch']} of {config.epochs}, {state['seconds']:,.0f} s",
            "best": "no validation yet"
            if state["best_mrr"] is None
            else f"MRR {state['best_mrr']:.3f} in epoch {state['best_epoch']} (valid, protocol {config.validated_by})",
            "trained on": "not known: the export does not say"
            if trained is None
            else f"{trained['device']}, torch {trained['torch']}, murp {trained['murp']}, begun {trained['started']}",
        }
        if config.slices:
            files = "1 file" if self.files == 1 else f"{self.files} files, one of each rank that wrote it"
            slices = "1 slice" if config.slices == 1 else f"{config.slices} slices"
            lines["divided"] = f"the newest checkpoint into {files}; a batch into {slices}"
        if isinstance(self.environment.get("recipe"), str):
            lines["recipe auto"] = printable(self.environment["recipe"])
        if isinstance(found := self.environment.get("extended"), dict):
            added = counted({name: found[name] for name in ("entities", "relations", "facts") if found.get(name)})
            lines["extended"] = printable(f"by {added}; before that {found.get('from')}")
        if folder.imported(self.path):
            lines["imported"] = f"{self.environment['started']} by murp {self.environment['murp']}"
        return lines

    def __repr__(self) -> str:
        lines = self.lines()
        width = max(map(len, lines))
        return "\n".join(f"{name:<{width}}  {text}" for name, text in lines.items())

    def _repr_html_(self) -> str:
        return html_table(["", ""], self.lines().items())


def info(path: Path) -> Info:
    """Read a run folder."""
    config, graph = folder.read_config(path), folder.read_graph(path)
    shapes, state, files = checkpoint.about(path / folder.LAST)
    state = checked(state, config, path / folder.LAST, path / folder.CONFIG)
    if checkpoint.exists(path / folder.BEST):  # which is used by default
        try:
            checkpoint.state_of(path / folder.BEST)
        except RunError as error:
            warnings.warn(str(error), stacklevel=2)
    return Info(
        path,
        config,
        graph,
        state,
        parameters={name: shape for name, shape in shapes.items() if not name.startswith(TABLES)},
        optimizer={name.removeprefix(TABLES): s for name, s in shapes.items() if name.startswith(TABLES)},
        environment=folder.read_environment(path),
        files=files,
    )


def _part(config: Config, kind: str) -> str:
    """The name of a part, and its own settings."""
    own = config.settings_of(kind)
    return ", ".join([config.to_dict()[kind], *(f"{name} {value}" for name, value in own.items())])


def _stored(config: Config) -> str:
    other = config.table_dtype not in ("auto", config.dtype)
    return f", points stored in {config.table_dtype}" if other else ""


def _numbers(shapes: dict[str, list[int]]) -> int:
    return sum(math.prod(shape) for shape in shapes.values())
