"""Discoveries and thresholds against trying everything."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from murp import models
from murp.errors import ConfigError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import MultiRelational
from murp.prediction.classification import Judged, best_threshold, choose_thresholds, classify, judge, verdicts
from murp.prediction.discovery import discover, heads_of, table_of


def model_of(graph: KnowledgeGraph) -> MultiRelational:
    model = models.murp(graph.num_entities, 2 * graph.num_relations, 4, dtype=torch.float64)
    model.initialise(0)
    draw = torch.Generator().manual_seed(0)
    for name in ("entity", "translation"):
        model.parameters[name] *= 100
    for name in ("subject_bias", "object_bias"):
        model.parameters[name].normal_(generator=draw)
    return model


@pytest.mark.parametrize("which", ["seen", "all"])
@pytest.mark.parametrize("relation", [0, 1])
@pytest.mark.parametrize("cells", [1, 2**20])
def test_discoveries_are_the_best_of_all_pairs(
    small_tree: KnowledgeGraph, which: str, relation: int, cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("murp.prediction.discovery._CELLS_AT_ONCE", cells)
    graph, model = small_tree, model_of(small_tree)
    stated = {tuple(fact) for fact in graph.facts().tolist()}
    heads = {s for s, r, _ in stated if r == relation} if which == "seen" else set(range(63))
    assert set(heads_of(graph, relation, which)) == heads  # type: ignore[arg-type]
    scores = model.score_objects(torch.arange(63), torch.full((63,), relation)).numpy()
    expected = sorted(
        ((scores[s, o], s, o) for s in heads for o in range(63) if s != o and (s, relation, o) not in stated),
        reverse=True,
    )[:25]
    done: list[int] = []
    found = discover(model, graph, relation, 25, heads=which, advance=done.append)  # type: ignore[arg-type]
    assert sum(done) == len(heads)
    # The same order although the paths round differently: drawn scores are apart by far more than rounding.
    assert list(zip(found.heads.tolist(), found.tails.tolist(), strict=True)) == [(s, o) for _, s, o in expected]
    np.testing.assert_allclose(found.scores, [score for score, _, _ in expected], rtol=1e-9)
    for s, o, place in zip(found.heads.tolist(), found.tails.tolist(), found.places.tolist(), strict=True):
        others = [x for x in range(63) if x != s and (s, relation, x) not in stated]
        assert place == 1 + sum(scores[s, x] > scores[s, o] for x in others)
    table = table_of(graph, found, None).to_pylist()
    assert [row["rank"] for row in table] == list(range(1, 26))
    assert [row["tail"] for row in table] == [f"n{o}" for _, _, o in expected]


def test_a_relation_with_loops_may_have_new_ones_and_few_candidates_are_no_trouble() -> None:
    facts = np.array([[0, 0, 0], [0, 0, 1]], dtype=np.int32)
    entities = Vocabulary("entity", ["a", "b", "c"])
    graph = KnowledgeGraph("t", entities, Vocabulary("relation", ["r"]), facts, facts[:0], facts[:0])
    found = discover(model_of(graph), graph, 0, 100, heads="all")
    pairs = set(zip(found.heads.tolist(), found.tails.tolist(), strict=True))
    assert pairs == {(s, o) for s in range(3) for o in range(3)} - {(0, 0), (0, 1)}
    with pytest.raises(ConfigError, match="k must be at least 1"):
        discover(model_of(graph), graph, 0, 0)


cases = st.lists(st.tuples(st.sampled_from([-3.0, -1.0, -0.5, 0.0, 1.0, 4.0]), st.booleans()), min_size=1, max_size=20)


@given(cases)
def test_no_threshold_is_better(drawn: list[tuple[float, bool]]) -> None:
    scores, true = np.array([x for x, _ in drawn]), np.array([t for _, t in drawn])
    t = best_threshold(scores, true)
    right = ((scores >= t) == true).sum()
    tried = [-4.0, *np.unique(scores), *(np.unique(scores)[:-1] + 1e-6)]
    assert right == max(((scores >= other) == true).sum() for other in tried)
    assert t == scores.min() or not np.isclose(scores, t).any()


def test_of_equally_good_thresholds_the_widest_gap_wins() -> None:
    # Exact: the middle of two small whole numbers.
    assert best_threshold(np.array([0.0, 1.0, 5.0]), np.array([False, True, True])) == 0.5
    assert best_threshold(np.array([0.0, 1.0, 2.0, 7.0]), np.array([False, True, False, True])) == 4.5


def test_thresholds_come_from_valid_alone_and_accuracy_from_test(small_tree: KnowledgeGraph) -> None:
    graph, model = small_tree, model_of(small_tree)
    found = classify(model, graph, seed=3)
    valid, test = judge(model, graph, "valid", 3), judge(model, graph, "test", 4)
    # To the bit: the same triples are scored by the same code, and thresholds are made of their scores.
    assert found.thresholds == choose_thresholds(valid)
    right = [
        (score >= found.thresholds.by_relation.get(r, found.thresholds.overall)) == true
        for score, r, true in zip(test.scores, test.relations.tolist(), test.true, strict=True)
    ]
    assert found.test.share == pytest.approx(np.mean(right))
    assert found.test.triples == 2 * len(graph.test)
    parts = found.by_relation.values()
    assert sum(p.share * p.triples for p in parts) == pytest.approx(sum(right))
    other = KnowledgeGraph("t", graph.entities, graph.relations, graph.train, graph.valid, graph.test[::-1])
    assert classify(model, other, seed=3).thresholds == found.thresholds


def test_a_relation_that_valid_lacks_has_the_threshold_of_all() -> None:
    judged = Judged(np.array([0.0, 2.0, 9.0, 5.0]), np.array([False, True, True, False]), np.array([0, 0, 2, 2]))
    thresholds = choose_thresholds(judged)
    # Exact: middles of small whole numbers.
    assert thresholds.by_relation == {0: 1.0, 2: 7.0}
    assert thresholds.of(np.array([0, 1, 2])).tolist() == [1.0, thresholds.overall, 7.0]


def test_verdicts_are_scores_against_thresholds(small_tree: KnowledgeGraph) -> None:
    model = model_of(small_tree)
    thresholds = choose_thresholds(judge(model, small_tree, "valid", 0))
    triples = small_tree.test.astype(np.int64)
    rows = verdicts(model, small_tree, triples, thresholds).to_pylist()
    scores = model.score(*torch.from_numpy(triples).T).tolist()
    for row, score, (head, relation, tail) in zip(rows, scores, triples.tolist(), strict=True):
        assert (row["head"], row["tail"]) == (f"n{head}", f"n{tail}")
        assert row["score"] == pytest.approx(score)
        assert row["threshold"] == thresholds.by_relation[relation]
        # Rounding decides nothing: the drawn scores are not that near to a threshold.
        assert row["true"] == (score >= row["threshold"])
