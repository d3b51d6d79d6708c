"""Predictions and neighbours against the scores and distances of single triples."""

from __future__ import annotations

import math

import pytest
import torch

from murp import models
from murp.errors import ConfigError, NotFiniteError
from murp.graph import KnowledgeGraph
from murp.models import MultiRelational
from murp.prediction import nearest, predict


def model_of(graph: KnowledgeGraph, name: str = "murp") -> MultiRelational:
    model = models.MODELS[name](graph.num_entities, 2 * graph.num_relations, 4, dtype=torch.float64)
    model.initialise(0)
    model.parameters["entity"] *= 100  # far enough apart for distances to differ
    return model


@pytest.mark.parametrize("name", ["murp", "mure"])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_predictions_are_the_best_scored_triples(small_tree: KnowledgeGraph, name: str, side: str) -> None:
    graph, model = small_tree, model_of(small_tree, name)
    found = predict(model, graph, relation="next", k=graph.num_entities, **{side: "n40"})
    assert sorted(p.id for p in found) == sorted(graph.entities.ids.to_pylist())
    relation = graph.relations.find("next") + (graph.num_relations if side == "tail" else 0)
    for p in found:
        triple = (torch.tensor([graph.entities.find(x)]) for x in ("n40", p.id))
        subject, answer = triple
        score = float(model.score(subject, torch.tensor([relation]), answer))
        assert p.score == pytest.approx(score, rel=1e-9)
        assert p.probability == pytest.approx(1 / (1 + math.exp(-score)), rel=1e-9)
    assert [p.score for p in found] == sorted((p.score for p in found), reverse=True)
    other = "n41" if side == "head" else "n39"  # leaves n31 … n62 follow one another
    assert [p.id for p in found if p.known is not None] == [other]


@pytest.mark.parametrize("name", ["murp", "mure"])
def test_the_nearest_are_those_at_the_smallest_distance(small_tree: KnowledgeGraph, name: str) -> None:
    graph, model = small_tree, model_of(small_tree, name)
    points = model.parameters["entity"]
    distances = {
        graph.entities.id(i): float(model.geometry.distance(points[7], points[i]))
        for i in range(graph.num_entities)
        if i != 7
    }
    found = nearest(model, graph, "n7", k=5)
    assert [n.id for n in found] == sorted(distances, key=distances.__getitem__)[:5]
    assert [n.distance for n in found] == pytest.approx([distances[n.id] for n in found])


def test_a_model_with_nan_is_an_error_and_gives_no_answer(small_tree: KnowledgeGraph) -> None:
    model = model_of(small_tree)
    model.parameters["entity"][3] = math.nan
    with pytest.raises(NotFiniteError, match=r"n1, next.*lower learning rate"):
        predict(model, small_tree, relation="next", head="n1")
    with pytest.raises(NotFiniteError, match=r"n1 .*lower learning rate"):
        nearest(model, small_tree, "n1")


def test_what_cannot_be_asked(small_tree: KnowledgeGraph) -> None:
    model = model_of(small_tree)
    for sides in ({}, {"head": "n1", "tail": "n2"}):
        with pytest.raises(ConfigError, match="either a head or a tail"):
            predict(model, small_tree, relation="next", **sides)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        predict(model, small_tree, relation="next", head="n1", k=0)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        nearest(model, small_tree, "n1", k=0)
