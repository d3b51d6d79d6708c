"""Predictions and neighbours against the scores and distances of single triples."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from murp import models
from murp.errors import ConfigError, NotFiniteError
from murp.graph import KnowledgeGraph
from murp.models import MultiRelational
from murp.prediction import Calibration, nearest, predict
from murp.prediction.isotonic import Steps
from murp.prediction.platt import Platt


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
    assert sorted([*(p.id for p in found), "n40"]) == sorted(graph.entities.ids.to_pylist())
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


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("split", [0, 1, 2])
def test_the_entity_asked_about_is_an_answer_where_the_relation_has_loops(
    small_tree: KnowledgeGraph, side: str, split: int
) -> None:
    splits = [small_tree.train, small_tree.valid, small_tree.test]
    splits[split] = np.append(splits[split], np.array([[50, 1, 50]], dtype=np.int32), axis=0)
    graph = KnowledgeGraph("loop", small_tree.entities, small_tree.relations, *splits)
    model = model_of(graph)
    for relation, new_only, own in (("next", False, True), ("next", True, False), ("parent", False, False)):
        found = predict(model, graph, relation=relation, k=63, new_only=new_only, **{side: "n50"})
        assert ("n50" in {p.id for p in found}) == own
    assert "n40" in {p.id for p in predict(model, graph, relation="next", k=63, new_only=True, **{side: "n40"})}


def test_calibrated_is_by_the_place_among_the_new(small_tree: KnowledgeGraph) -> None:
    calibration = Calibration("platt", Platt(0.5, 0.7, 1.0), Steps([0.0], [0.5]), 1, 0, {}, {})
    found = predict(model_of(small_tree), small_tree, relation="parent", tail="n0", k=62, calibration=calibration)
    assert sum(p.known is not None for p in found) == 2
    place = 1
    for p in found:
        assert p.calibrated == pytest.approx(1 / (1 + math.exp(-(0.5 * p.score - 0.7 * math.log(place) + 1))))
        place += p.known is None


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
    with pytest.raises(NotFiniteError, match=r"n1: distances .*lower learning rate"):
        nearest(model, small_tree, "n1")


def test_what_cannot_be_asked(small_tree: KnowledgeGraph) -> None:
    model = model_of(small_tree)
    for sides, message in (({}, "give a head or a tail: "), ({"head": "n1", "tail": "n2"}, "either .*, not both")):
        with pytest.raises(ConfigError, match=message):
            predict(model, small_tree, relation="next", **sides)
    for wrong in ({"head": 3}, {"tail": 3}, {"head": "n1", "relation": 3}):
        with pytest.raises(ConfigError, match=f"^{list(wrong)[-1]} must be an id or a name, which is a text, not 3"):
            predict(model, small_tree, **{"relation": "next", **wrong})
    for k in ("3", 3.0, None):
        with pytest.raises(ConfigError, match=f"k must be a whole number, not {k!r}"):
            predict(model, small_tree, relation="next", head="n1", k=k)
    with pytest.raises(ConfigError, match="entity must be an id or a name"):
        nearest(model, small_tree, 3)
    assert len(nearest(model, small_tree, "n1", k=np.int64(2))) == 2
    with pytest.raises(ConfigError, match="k must be at least 1"):
        predict(model, small_tree, relation="next", head="n1", k=0)
    with pytest.raises(ConfigError, match="k must be at least 1"):
        nearest(model, small_tree, "n1", k=0)
