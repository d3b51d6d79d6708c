"""The candidates of questions against trying everything."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from murp import models
from murp.graph import SPLITS, KnowledgeGraph, Split, relations_with_loops
from murp.models import MultiRelational
from murp.prediction import candidates as module
from murp.prediction.candidates import candidates, places_among_new


def model_of(graph: KnowledgeGraph) -> MultiRelational:
    model = models.murp(graph.num_entities, 2 * graph.num_relations, 4, dtype=torch.float64)
    model.initialise(0)
    model.parameters["entity"] *= 100
    model.parameters["object_bias"].normal_(generator=torch.Generator().manual_seed(0))
    return model


def with_loop(graph: KnowledgeGraph) -> KnowledgeGraph:
    """The relation ``next`` has a fact of an entity with itself."""
    train = np.append(graph.train, np.array([[50, 1, 50]], dtype=np.int32), axis=0)
    return KnowledgeGraph(graph.name, graph.entities, graph.relations, train, graph.valid, graph.test)


def all_of(model: MultiRelational, graph: KnowledgeGraph, split: Split) -> list[tuple[float, int, bool]]:
    """Score, place and truth of every candidate, question by question."""
    found = []
    earlier = {tuple(f) for s in SPLITS[: SPLITS.index(split)] for f in graph.with_reciprocals(graph.split(s)).tolist()}
    answers = {tuple(f) for f in graph.with_reciprocals(graph.split(split)).tolist()} - earlier
    for s, r in sorted({(s, r) for s, r, _ in answers}):
        scores = model.score_objects(torch.tensor([s]), torch.tensor([r]))[0].tolist()
        there = [o for o in range(len(scores)) if (s, r, o) not in earlier and (o != s or r % 2 == 1)]
        ranked = sorted(there, key=lambda o: -scores[o])
        found += [(scores[o], place, (s, r, o) in answers) for place, o in enumerate(ranked, start=1)]
    return found


@pytest.mark.parametrize("split", ["valid", "test"])
@pytest.mark.parametrize(("best", "drawn"), [(100, 20), (1, 62), (7, 60)])
def test_where_all_are_taken_they_are_all(
    small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, split: Split, best: int, drawn: int
) -> None:
    monkeypatch.setattr(module, "BEST", best)
    monkeypatch.setattr(module, "DRAWN", drawn)
    graph = with_loop(small_tree)
    model = model_of(graph)
    found = candidates(model, graph, split, 0)
    expected = all_of(model, graph, split)
    assert (found.weights == 1).all()
    rows = sorted(zip(found.scores, found.places, found.true, strict=True))
    np.testing.assert_allclose(np.array(rows, float), np.array(sorted(expected), float), rtol=1e-9, atol=1e-9)
    assert len(found.best(3).scores) == 3 * found.questions


def test_those_drawn_stand_for_the_others(small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEST", 5)
    monkeypatch.setattr(module, "DRAWN", 6)
    model, sums, places = model_of(small_tree), [], []
    graph = with_loop(small_tree)
    expected = all_of(model, graph, "valid")
    for seed in range(200):
        found = candidates(model, graph, "valid", seed)
        assert found.weights.sum() == pytest.approx(len(expected))
        assert found.true.sum() == sum(t for _, _, t in expected)
        assert (found.weights[found.true] == 1).all()
        best = found.best(5)
        assert sorted(best.scores) == pytest.approx(sorted(score for score, place, _ in expected if place <= 5))
        sums.append((found.weights * found.scores).sum())
        places.append((found.weights * found.places).sum())
    assert len(set(sums)) > 100
    for drawn, truth in ((sums, sum(s for s, _, _ in expected)), (places, sum(p for _, p, _ in expected))):
        assert np.mean(drawn) == pytest.approx(truth, abs=4 * np.std(drawn) / np.sqrt(len(drawn)) + 0.002 * abs(truth))


def test_of_many_questions_a_part_is_asked(small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_QUESTIONS", 4)
    model = model_of(small_tree)
    found = [candidates(model, small_tree, "valid", seed) for seed in (0, 0, 1)]
    assert [of.questions for of in found] == [4, 4, 4]
    # To the bit: the same questions, and a score does not depend on what else is asked (tests/kernels).
    assert (found[0].scores == found[1].scores).all()
    assert sorted(found[0].scores) != sorted(found[2].scores)


def test_loops_are_of_either_direction(small_tree: KnowledgeGraph) -> None:
    assert relations_with_loops(small_tree).tolist() == [False] * 4
    assert relations_with_loops(with_loop(small_tree)).tolist() == [False, True, False, True]


@given(st.lists(st.booleans(), max_size=12))
def test_a_place_counts_the_new_that_stand_before(new: list[bool]) -> None:
    assert places_among_new(np.array(new, dtype=bool)).tolist() == [1 + sum(new[:i]) for i in range(len(new))]
