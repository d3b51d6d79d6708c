"""Small runs to export: drawn weights, names that need escaping, points up to the rim of the ball."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch

from murp import models
from murp.config import Config
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import Run, folder, load

MakeRun = Callable[..., Run]


def named(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The graph with names: shared, with blanks, tabs and quotes, and missing."""
    names: list[str | None] = [f"node {i}" for i in range(graph.num_entities)]
    names[1:6] = ["John Smith", "John Smith", 'a "b"\tc', None, "John_Smith[n1]"]
    glosses: list[str | None] = [None] * graph.num_entities
    glosses[0] = "the root:\nhas no parent"
    entities = Vocabulary("entity", graph.entities.ids, names, glosses)
    return KnowledgeGraph("tree", entities, graph.relations, graph.train, graph.valid, graph.test)


def maker(graph: KnowledgeGraph, where: Path) -> MakeRun:
    """What makes run folders under ``where``: ``make_run("first", model="mure", dim=3)``."""
    graph = named(graph)

    def make(name: str = "run", **settings: object) -> Run:
        config = Config.from_mapping({"data": "tree", "dim": 3, **settings}, "test")
        model = models.from_config(config, graph.num_entities, graph.num_relations)
        model.initialise(0)
        draw = torch.Generator().manual_seed(0)
        for table in model.tables:
            values = torch.randn(model.parameters[table.name].shape, dtype=torch.float64, generator=draw)
            model.parameters[table.name] = table.geometry.project(table.geometry.exp0(values)).to(model.dtype)
        if config.model == "murp":
            rim = model.geometry.project(model.geometry.project(torch.ones(1, config.dim, dtype=model.dtype)) * 1e6)
            model.parameters["entity"][:1] = rim
        state = {"epoch": 7, "chunk": 0, "loss": 0.0, "seconds": 1.5, "best_mrr": 0.25, "best_epoch": 7, "stale": 0}
        path = where / name
        folder.create(path, config, graph, model, state, "torch")
        valid = {"split": "valid", "protocol": "standard", "mrr": 0.25, "queries": 18}
        valid |= {"hits@1": 0.125, "hits@3": 0.375, "hits@10": 0.5}
        (path / folder.METRICS).write_text(json.dumps({"epoch": 7, "loss": 0.5, "valid": valid}) + "\n")
        return load(path, device="cpu")

    return make
