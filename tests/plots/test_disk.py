"""The picture of a question shows true distances, for any name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from boxes import assert_apart, drawn_boxes

from murp import models
from murp.config import Config
from murp.graph import KnowledgeGraph, Vocabulary
from murp.plots.disk import answers_disk, draw, view
from murp.runs import Run


@pytest.mark.parametrize("name", ["murp", "mure"])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_distances_from_the_centre_are_true(small_tree: KnowledgeGraph, name: str, dim: int) -> None:
    model = models.MODELS[name](small_tree.num_entities, 2 * small_tree.num_relations, dim, dtype=torch.float64)
    model.initialise(0)
    model.parameters["entity"] *= 100
    seen = view(model, small_tree, 5, 1)
    # Without biases the score is minus the squared distance.
    squared = -model.score_objects(torch.tensor([5]), torch.tensor([1]))[0].numpy()
    distance = np.sqrt(np.maximum(squared, 0))
    drawn = np.tanh(distance / 2) if name == "murp" else distance / (1 + distance)
    assert np.linalg.norm(seen.positions, axis=1) == pytest.approx(drawn, abs=1e-6)
    facts = {o for s, r, o in small_tree.facts().tolist() if (s, r) == (5, 1)}
    assert set(np.flatnonzero(seen.known)) == facts


def test_names_are_no_formulas(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    names = [rf"$\broken_{{{i}$" for i in range(small_tree.num_entities)]
    graph = KnowledgeGraph(
        "prices",
        Vocabulary("entity", names),
        small_tree.relations,
        small_tree.train,
        small_tree.valid,
        small_tree.test,
    )
    config = Config(dim=3)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    draw(Run(tmp_path, config, graph, model, {}), head=names[40], relation="next", path=tmp_path / "a.svg")
    assert (tmp_path / "a.svg").exists()


def test_names_of_answers_do_not_overlap(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    config = Config(dim=4)
    model = models.from_config(config, small_tree.num_entities, small_tree.num_relations)
    model.initialise(0)
    model.parameters["entity"] *= 100
    model.parameters["object_bias"][:] = 9.0  # everything is predicted
    figure = answers_disk(Run(tmp_path, config, small_tree, model, {}), 5, 0)
    texts = list(figure.axes[0].texts)
    assert 20 < len(texts) <= 40
    assert_apart(drawn_boxes(figure, texts))
