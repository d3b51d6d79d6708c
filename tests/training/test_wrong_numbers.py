"""NaN, infinity and points outside the ball: caught where they arise and where they are read, and said where."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import murp
from murp import models
from murp.config import Config
from murp.errors import NotFiniteError
from murp.exchange import export, import_run
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.prediction.answers import predict
from murp.prediction.nearest import nearest
from murp.prediction.search import top_objects
from murp.runs import folder
from murp.training import loop

BAD = [("entity", 3, math.nan), ("entity", 3, 2.0), ("translation", 1, math.inf), ("object_bias", 4, -math.inf)]
STATE = {"epoch": 1, "chunk": 0, "loss": 0.0, "seconds": 0.0, "best_mrr": None, "best_epoch": 0, "stale": 0}
CONFIG = Config(dim=3, data="tree")


def drawn(graph: KnowledgeGraph) -> Any:
    return models.from_config(CONFIG, graph.num_entities, graph.num_relations).initialise(0)


def stored(path: Path, graph: KnowledgeGraph, model: Model) -> Path:
    folder.create(path, CONFIG, graph, model, STATE, "torch")
    return path


@pytest.mark.parametrize(("table", "row", "value"), BAD)
def test_a_checkpoint_that_holds_them_is_not_opened(
    small_tree: KnowledgeGraph, tmp_path: Path, table: str, row: int, value: float
) -> None:
    model = drawn(small_tree)
    murp.load(stored(tmp_path / "good", small_tree, model))
    model.parameters[table][row] = value
    with pytest.raises(NotFiniteError, match=rf"last.safetensors holds .*{table} \(row {row}\).*lower learning rate"):
        murp.load(stored(tmp_path / "bad", small_tree, model))


@pytest.mark.parametrize(("table", "row", "value"), BAD)
def test_an_export_that_holds_them_is_not_imported(
    small_tree: KnowledgeGraph, tmp_path: Path, table: str, row: int, value: float
) -> None:
    run = murp.load(stored(tmp_path / "good", small_tree, drawn(small_tree)))
    run.model.parameters[table][row] = value
    export(run, "npz", tmp_path / "it.npz")
    small_tree.save(tmp_path / "graph")
    with pytest.raises(NotFiniteError, match=rf"it.npz holds NaN, infinity .*{table} \(row {row}\)"):
        import_run(tmp_path / "it.npz", tmp_path / "back", str(tmp_path / "graph"))
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_no_answer_has_an_infinite_score(small_tree: KnowledgeGraph, value: float) -> None:
    model = drawn(small_tree)
    model.parameters["object_bias"][4] = value
    with pytest.raises(NotFiniteError, match=r"n1, next.*lower learning rate"):
        predict(model, small_tree, relation="next", head="n1")
    with pytest.raises(NotFiniteError, match=r"entity 1, relation 0\).*lower learning rate"):
        top_objects(model, np.array([1]), np.array([0]), 3)
    flat: Any = models.mure(5, 2, 2).initialise(0)
    flat.parameters["entity"][2] = value
    graph = KnowledgeGraph("five", small_tree.entities, small_tree.relations, *[small_tree.train] * 3)
    with pytest.raises(NotFiniteError, match=r"n1: distances are NaN or infinite"):
        nearest(flat, graph, "n1")


def test_a_score_that_is_nan_stops_the_training(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parameters are finite and the loss is; validation is the first to see the score."""

    def unrankable(*given: Any, **more: Any) -> None:
        raise NotFiniteError("a score is NaN")

    monkeypatch.setattr(loop, "evaluate", unrankable)
    with pytest.raises(NotFiniteError, match=r"^a score became NaN or infinite in epoch 2 .*rate of 0\.2, or --dtype"):
        murp.train(small_tree, out=tmp_path / "run", dim=2, lr=1.0, epochs=3, validate_every=2, engine="torch")
    assert murp.load(tmp_path / "run").model.broken() == []


@pytest.mark.parametrize("engine", ["torch", "numba"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_learning_rate_that_is_too_high_stops_the_training_with_advice(
    small_tree: KnowledgeGraph, tmp_path: Path, engine: str, dtype: str
) -> None:
    told = (
        r"Try a learning rate of 2e\+59\. The" if dtype == "float64" else r"Try a learning rate of 2e\+59, or --dtype"
    )
    with pytest.raises(NotFiniteError, match=rf"became NaN or infinite in epoch \d+ .*{told}"):
        murp.train(small_tree, out=tmp_path / "run", model="mure", dim=2, lr=1e60, epochs=9, engine=engine, dtype=dtype)
    run = murp.load(tmp_path / "run")
    assert run.model.broken() == []
    assert torch.isfinite(run.model.score_objects(torch.tensor([0]), torch.tensor([0]))).all()
