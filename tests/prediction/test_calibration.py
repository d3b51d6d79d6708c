"""Calibration against SciPy, corruptions against the facts, measures against their definitions."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import given
from hypothesis import strategies as st

from murp import models
from murp.errors import DataError, NotFiniteError, RunError
from murp.evaluation import KnownFacts
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import MultiRelational
from murp.prediction.calibration import Calibration, calibrate, platt
from murp.prediction.corruptions import corrupt, judge_both_sides, judge_one_side
from murp.prediction.isotonic import isotonic, pool_adjacent_violators
from murp.prediction.probability import brier, log_loss, reliability, sigmoid

numbers = st.floats(-50, 50, allow_subnormal=False)
cases = st.lists(st.tuples(numbers, st.booleans()), min_size=2, max_size=40)


def split(drawn: list[tuple[float, bool]]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    return np.array([x for x, _ in drawn]), np.array([t for _, t in drawn])


@given(st.lists(st.tuples(numbers, st.floats(0.01, 10)), min_size=1, max_size=40))
def test_pooling_is_isotonic_regression(drawn: list[tuple[float, float]]) -> None:
    y, weights = np.array(drawn).T
    found = pool_adjacent_violators(y, weights)
    assert (np.diff(found) >= 0).all()
    expected = scipy.optimize.isotonic_regression(y, weights=weights).x
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@given(cases)
def test_isotonic_map_is_the_regression_at_the_scores_it_was_fitted_to(drawn: list[tuple[float, bool]]) -> None:
    scores, true = split(drawn)
    steps = isotonic(scores, true)
    places, group = np.unique(scores, return_inverse=True)
    share = np.bincount(group, weights=true) / np.bincount(group)
    expected = scipy.optimize.isotonic_regression(share, weights=np.bincount(group)).x
    margin = 1 / (len(scores) + 2)
    np.testing.assert_allclose(steps.at(places), expected.clip(margin, 1 - margin), atol=1e-12)
    assert (np.diff(steps.at(np.linspace(-60, 60, 500))) >= 0).all()
    assert (np.diff(steps.places) > 0).all()


@given(cases)
def test_platt_minimises_the_log_loss_of_its_targets(drawn: list[tuple[float, bool]]) -> None:
    scores, true = split(drawn)
    a, b = platt(scores, true)
    targets = np.where(true, (true.sum() + 1) / (true.sum() + 2), 1 / ((~true).sum() + 2))

    def loss(of: np.ndarray) -> float:  # type: ignore[type-arg]
        z = of[0] * scores + of[1]
        return float(np.mean(np.logaddexp(0, z) - targets * z))

    spread = max(float(scores.std()), 1e-3)
    found = loss(np.array([a, b]))
    assert a >= 0
    for start in ((0.0, 0.0), (a, b)):
        best = scipy.optimize.minimize(loss, start, method="Nelder-Mead", bounds=[(0, None), (None, None)])
        assert found <= best.fun + 1e-9
    for step in ((1e-3 / spread, 0), (-min(a, 1e-3 / spread), 0), (0, 1e-3), (0, -1e-3)):
        assert loss(np.array([a + step[0], b + step[1]])) >= found - 1e-15


def test_platt_finds_the_map_the_labels_were_drawn_by() -> None:
    draw = np.random.default_rng(0)
    scores = draw.normal(-3, 4, 200_000)
    true = draw.random(len(scores)) < sigmoid(0.7 * scores + 1.5)
    assert platt(scores, true) == pytest.approx((0.7, 1.5), abs=0.03)


@given(cases)
def test_measures_follow_their_definitions(drawn: list[tuple[float, bool]]) -> None:
    scores, true = split(drawn)
    p = sigmoid(scores)
    assert p == pytest.approx([1 / (1 + math.exp(-x)) for x in scores])
    assert brier(p, true) == pytest.approx(sum((q - t) ** 2 for q, t in zip(p, true, strict=True)) / len(p))
    truth = [q if t else 1 - q for q, t in zip(p, true, strict=True)]
    if min(truth) > 0:
        assert log_loss(p, true) == pytest.approx(-sum(map(math.log, truth)) / len(p))
    bins = reliability(p, true)
    assert sum(b.count for b in bins) == len(p)
    for b in bins:
        inside = [(q, t) for q, t in zip(p, true, strict=True) if b.low <= q < b.high or (b.high == 1 and q == 1)]
        assert b.count == len(inside)
        if inside:
            assert b.predicted == pytest.approx(np.mean([q for q, _ in inside]))
            assert b.observed == pytest.approx(np.mean([t for _, t in inside]))
        else:
            assert b.predicted is b.observed is None


def test_a_probability_of_nothing_for_what_was_the_case_costs_everything() -> None:
    assert log_loss(np.array([0.0]), np.array([True])) == math.inf
    assert sigmoid(np.array([-800.0, 800.0])).tolist() == [0.0, 1.0]


@pytest.fixture
def model(small_tree: KnowledgeGraph) -> MultiRelational:
    """Weights of a short training are not needed: the facts of the graph are given a bonus by biases."""
    model = models.murp(small_tree.num_entities, 2 * small_tree.num_relations, 4, dtype=torch.float64)
    model.initialise(0)
    model.parameters["entity"] *= 100
    model.parameters["object_bias"].normal_(generator=torch.Generator().manual_seed(0))
    return model


def test_corruptions_are_never_facts_and_repeat(small_tree: KnowledgeGraph) -> None:
    known = KnownFacts.of(small_tree)
    facts = small_tree.with_reciprocals(small_tree.facts()).astype(np.int64)
    stated = {tuple(fact) for fact in facts.tolist()}
    drawn = corrupt(facts[:, 0], facts[:, 1], small_tree.num_entities, known, 5)
    assert (drawn >= 0).all()
    assert not any((s, r, o) in stated for (s, r, _), o in zip(facts.tolist(), drawn.tolist(), strict=True))
    assert (drawn == corrupt(facts[:, 0], facts[:, 1], small_tree.num_entities, known, 5)).all()
    assert (drawn != corrupt(facts[:, 0], facts[:, 1], small_tree.num_entities, known, 6)).any()


def test_every_candidate_has_the_same_chance() -> None:
    known = KnownFacts(np.array([[0, 0, 1]], dtype=np.int32), 1)
    drawn = corrupt(np.zeros(40_000, np.int64), np.zeros(40_000, np.int64), 5, known, 0)
    counts = np.bincount(drawn, minlength=5)
    assert counts[1] == 0
    assert (abs(counts[[0, 2, 3, 4]] - 10_000) < 500).all()


def test_judged_scores_are_those_of_facts_and_of_corruptions(
    small_tree: KnowledgeGraph, model: MultiRelational
) -> None:
    g = small_tree
    both = judge_both_sides(model, g, "valid", 0)
    n = len(g.valid)
    assert (both.true.sum(), len(both.true)) == (2 * n, 4 * n)
    facts = torch.from_numpy(g.with_reciprocals(g.valid).astype(np.int64))
    np.testing.assert_allclose(both.scores[both.true], model.score(*facts.T).numpy(), rtol=1e-12)
    assert sorted(set(both.relations.tolist())) <= [0, 1]
    one = judge_one_side(model, g, "valid", 0)
    assert (one.true.sum(), len(one.true)) == (n, 2 * n)
    forwards = model.score(*torch.from_numpy(g.valid.astype(np.int64)).T).numpy()
    np.testing.assert_allclose(one.scores[one.true], forwards, rtol=1e-12)
    assert (one.relations[one.true] == g.valid[:, 1]).all()
    all_scores = model.score_objects(torch.arange(63).repeat(2), torch.arange(2).repeat_interleave(63)).numpy()
    distances = np.abs(all_scores.ravel()[None] - one.scores[~one.true][:, None]).min(1)
    assert (distances < 1e-9).all()


def test_calibration_improves_and_comes_back_from_its_file(
    small_tree: KnowledgeGraph, model: MultiRelational, tmp_path: Path
) -> None:
    found = calibrate(model, small_tree, epoch=3, method="isotonic", seed=1)
    for method in ("platt", "isotonic"):
        assert found.test[method]["brier"] < found.test["uncalibrated"]["brier"]
        assert sum(b["count"] for b in found.test[method]["reliability"]) == 4 * len(small_tree.test)
    (tmp_path / "calibration.json").write_text(found.to_json())
    again = Calibration.read(tmp_path / "calibration.json")
    assert again == found
    scores = np.linspace(-20, 20, 50).reshape(5, 10)
    assert again.probability(scores).shape == (5, 10)
    assert (np.diff(again.probability(scores, "platt").ravel()) >= 0).all()
    assert dataclasses.replace(found, method="platt").probability(scores) == pytest.approx(
        found.probability(scores, "platt")
    )
    for text in ("", "[]", "{}", '{"format": 2}'):
        (tmp_path / "calibration.json").write_text(text)
        with pytest.raises(RunError, match=r"calibration\.json cannot be read.*murp calibrate"):
            Calibration.read(tmp_path / "calibration.json")


def test_what_cannot_be_calibrated(small_tree: KnowledgeGraph, model: MultiRelational) -> None:
    g = small_tree
    empty = KnowledgeGraph("t", g.entities, g.relations, g.train, g.valid[:0], g.test)
    with pytest.raises(DataError, match="valid split has no triples"):
        calibrate(model, empty, epoch=1)
    facts = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]], dtype=np.int32)
    full = KnowledgeGraph("t", Vocabulary("entity", ["a", "b"]), Vocabulary("relation", ["r"]), facts, facts, facts)
    with pytest.raises(DataError, match="nothing is false here"):
        calibrate(model, full, epoch=1)
    model.parameters["entity"][:] = math.nan
    with pytest.raises(NotFiniteError, match="not finite"):
        calibrate(model, small_tree, epoch=1)
