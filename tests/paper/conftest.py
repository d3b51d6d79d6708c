"""Every item of the paper as a toy, run once for all tests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from made_once import once
from murp.graph import SPLITS, KnowledgeGraph
from murp.graph.indexing import table_of
from murp.paper import ITEMS, Experiments


@pytest.fixture(scope="session")
def small() -> KnowledgeGraph:
    """The bundled graph within three steps of Asia: enough for every item, and a seventh of it."""
    whole = KnowledgeGraph.load("wordnet-mini")
    facts = whole.facts()
    near = np.arange(whole.num_entities) == whole.entities.find("asia.n.01")
    for _ in range(3):
        touched = facts[near[facts[:, 0]] | near[facts[:, 2]]]
        near[touched[:, [0, 2]]] = True
    parts = [part[near[part[:, 0]] & near[part[:, 2]]] for part in map(whole.split, SPLITS)]
    names = {f"{v.kind}_names": v.table() for v in (whole.entities, whole.relations) if v.names is not None}
    return KnowledgeGraph.from_tables(whole.name, *(table_of(whole, part) for part in parts), **names)


@pytest.fixture(scope="session")
def toys(tmp_path_factory: pytest.TempPathFactory, small: KnowledgeGraph) -> Path:
    def run(out: Path) -> None:
        experiments = Experiments(out, device="cpu", quick=True)
        experiments.graphs[small.name] = small
        for item in ITEMS.values():
            item(experiments)

    return once(tmp_path_factory, "toys", run)


@pytest.fixture
def on_small(small: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every experiment takes the small graph for the bundled one, as the toys did."""
    monkeypatch.setattr("murp.paper.experiments.KnowledgeGraph", SimpleNamespace(load=lambda name: small))
