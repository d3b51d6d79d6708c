"""Calibration against a known truth, corruptions against the facts, maps and measures by their definitions."""

from __future__ import annotations

import dataclasses
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from murp import models
from murp.errors import DataError, NotFiniteError, RunError
from murp.evaluation import KnownFacts
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import MultiRelational
from murp.prediction import platt
from murp.prediction.calibration import METHODS, SHOWN, Calibration, calibrate
from murp.prediction.candidates import candidates
from murp.prediction.classification import corrupt, judge
from murp.prediction.isotonic import isotonic
from murp.prediction.probability import EDGES, brier, log_loss, reliability, sigmoid

numbers = st.floats(-50, 50, allow_subnormal=False)
weights = st.floats(0.01, 100)
cases = st.lists(st.tuples(numbers, st.booleans(), weights), min_size=2, max_size=40)
placed = st.lists(st.tuples(numbers, st.booleans(), st.integers(1, 10)), min_size=2, max_size=40)
Array = NDArray[Any]


def columns(drawn: list[tuple[float, bool, float]]) -> tuple[Array, Array, Array]:
    scores, true, last = zip(*drawn, strict=True)
    return np.array(scores), np.array(true), np.array(last, dtype=float)


def nearest_ascending(y: Array, weights: Array) -> Array:
    """The isotonic regression by its formula: fᵢ is the largest over a ≤ i of the least over b ≥ i mean of y[a : b]."""
    n, mass, sums = len(y), np.append(0, np.cumsum(weights)), np.append(0, np.cumsum(weights * y))
    means = [[(sums[b] - sums[a]) / (mass[b] - mass[a]) for b in range(a + 1, n + 1)] for a in range(n)]
    return np.array([max(min(means[a][i - a :]) for a in range(i + 1)) for i in range(n)])


@given(cases)
def test_isotonic_map_is_the_regression_at_the_scores_it_was_fitted_to(drawn: list[tuple[float, bool, float]]) -> None:
    scores, true, weights = columns(drawn)
    steps = isotonic(scores, true, weights)
    places, group = np.unique(scores, return_inverse=True)
    masses = np.bincount(group, weights=weights)
    share = np.bincount(group, weights=weights * true) / masses
    expected = nearest_ascending(share, masses)
    positives = weights[true].sum()
    low, high = 1 / (weights[~true].sum() + 2), (positives + 1) / (positives + 2)
    np.testing.assert_allclose(steps.at(places), expected.clip(low, high), atol=1e-9)
    assert (np.diff(steps.at(np.linspace(-60, 60, 500))) >= 0).all()
    assert (np.diff(steps.places) > 0).all()


@given(placed)
@example([(0.36, False, 1.0)] * 3)  # equal scores, whose mean is another number
def test_platt_minimises_the_log_loss_of_its_targets(drawn: list[tuple[float, bool, float]]) -> None:
    scores, true, places = columns(drawn)
    fitted = platt.fit(scores, places, true)
    targets = np.where(true, (true.sum() + 1) / (true.sum() + 2), 1 / ((~true).sum() + 2))

    def loss(of: Array) -> float:
        z = of[0] * scores - of[1] * np.log(places) + of[2]
        return float(np.mean(np.logaddexp(0, z) - targets * z))

    found = np.array([fitted.slope, fitted.fall, fitted.intercept])
    assert (found[:2] >= 0).all()
    bounds = [(0, None), (0, None), (None, None)]
    for start in (np.zeros(3), found):
        best = scipy.optimize.minimize(loss, start, method="Nelder-Mead", bounds=bounds)
        assert loss(found) <= best.fun + 1e-9
    np.testing.assert_allclose(
        fitted.log_odds(scores, places), found[0] * scores - found[1] * np.log(places) + found[2], rtol=1e-12, atol=1e-9
    )


def test_platt_refuses_scores_that_have_no_spread_to_fit() -> None:
    with pytest.raises(NotFiniteError, match="no probabilities can be fitted"), np.errstate(invalid="ignore"):
        platt.fit(np.array([0.0, math.inf]), np.ones(2), np.array([True, False]))


def test_platt_finds_the_map_the_labels_were_drawn_by() -> None:
    draw = np.random.default_rng(0)
    scores, places = draw.normal(-3, 4, 200_000), draw.integers(1, 11, 200_000)
    true = draw.random(len(scores)) < sigmoid(0.7 * scores - 0.9 * np.log(places) + 1.5)
    found = platt.fit(scores, places, true)
    # Four standard errors, which are those of the Fisher information Σ p(1 - p) x xᵀ of a logistic regression.
    x = np.stack([scores, -np.log(places), np.ones_like(scores)], axis=1)
    p = sigmoid(x @ np.array([0.7, 0.9, 1.5]))
    errors = np.sqrt(np.diag(np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x)))
    assert (np.abs(np.array([found.slope, found.fall, found.intercept]) - [0.7, 0.9, 1.5]) < 4 * errors).all()


@given(cases)
def test_measures_follow_their_definitions(drawn: list[tuple[float, bool, float]]) -> None:
    scores, true, weights = columns(drawn)
    p, total = sigmoid(scores), weights.sum()
    rows = list(zip(p, true, weights, strict=True))
    assert p == pytest.approx([1 / (1 + math.exp(-x)) for x in scores])
    assert brier(p, true, weights) == pytest.approx(sum(w * (q - t) ** 2 for q, t, w in rows) / total)
    truth = [q if t else 1 - q for q, t, _ in rows]
    if min(truth) > 0:
        expected = -sum(w * math.log(q) for q, w in zip(truth, weights, strict=True)) / total
        assert log_loss(p, true, weights) == pytest.approx(expected)
    bins = reliability(p, true, weights)
    assert [b.low for b in bins] + [1] == list(EDGES)
    for b in bins:
        inside = [(q, t, w) for q, t, w in rows if b.low <= q < b.high or (b.high == 1 and q == 1)]
        mass = sum(w for _, _, w in inside)
        assert b.count == round(mass)
        if inside:
            assert b.predicted == pytest.approx(sum(w * q for q, _, w in inside) / mass)
            assert b.observed == pytest.approx(sum(w * t for _, t, w in inside) / mass)
        else:
            assert b.predicted is b.observed is None


def test_a_probability_of_nothing_for_what_was_the_case_costs_everything() -> None:
    assert log_loss(np.array([0.0]), np.array([True]), np.ones(1)) == math.inf
    # Exact: e⁻⁸⁰⁰ is below the smallest number.
    assert sigmoid(np.array([-800.0, 800.0])).tolist() == [0.0, 1.0]


def test_what_fits_nothing_does_not_wait_for_scipy() -> None:
    modules = "murp, murp.analysis, murp.prediction.calibration, murp.training.start"
    code = f"import sys, {modules}; sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class Table:
    """A scorer with any scores: those of relation 0, and for its reciprocal the same the other way."""

    device = torch.device("cpu")

    def __init__(self, scores: Array) -> None:
        self.scores = torch.from_numpy(np.stack([scores, scores.T]))
        self.num_entities = len(scores)

    def score_objects(self, subjects: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        return self.scores[relations, subjects].clone()

    def score(self, subjects: torch.Tensor, relations: torch.Tensor, objects: torch.Tensor) -> torch.Tensor:
        return self.scores[relations, subjects, objects]


def truth_of(scores: Array) -> Array:
    """How probable each cell (s, o) is."""
    return sigmoid(1.2 * scores - 3.5)


@pytest.fixture(scope="module")
def world() -> tuple[Table, KnowledgeGraph]:
    """Facts drawn by a known law: a pair is in valid with its probability and, if not, in test with the same."""
    draw = np.random.default_rng(4)
    entities = 400
    scores = draw.normal(0, 1.2, (entities, entities))
    apart = ~np.eye(entities, dtype=bool)
    valid = (draw.random(scores.shape) < truth_of(scores)) & apart
    test = (draw.random(scores.shape) < truth_of(scores)) & apart & ~valid
    splits = [np.argwhere(cells)[:, [0, 0, 1]] * [1, 0, 1] for cells in (valid & False, valid, test)]
    names = Vocabulary("entity", [f"e{i}" for i in range(entities)])
    facts = [part.astype(np.int32) for part in splits]
    return Table(scores), KnowledgeGraph("world", names, Vocabulary("relation", ["r"]), *facts)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_are_the_shares_that_are_true(world: tuple[Table, KnowledgeGraph], method: Any) -> None:
    model, graph = world
    found = calibrate(model, graph, epoch=1, method=method)  # type: ignore[arg-type]
    rows = candidates(model, graph, "test", 1)  # type: ignore[arg-type]
    # Every pair is asked for twice, by its head and by its tail: as many independent draws as half the rows.
    for k in (1, 3, SHOWN):
        part = rows.best(k)
        p, law = found.probability(part.scores, part.places), truth_of(part.scores)
        error = math.sqrt((law * (1 - law)).sum() * 2) / len(law)
        assert abs(p.mean() - part.true.mean()) < 4 * error
        # A map that says the same of all of them, its mean, is off by this.
        assert np.abs(p - law).mean() < np.abs(law.mean() - law).mean() / 2
    for part in ("shown", "all"):
        worth = found.test[part]
        share = worth["answers"] / worth["candidates"]
        # Four standard errors of a share whose draws count half; as much again of the one on valid that it learned.
        error = math.sqrt(2 * 2 * (1 - share) / worth["answers"])
        assert share == pytest.approx(worth[method]["mean"], rel=4 * error)
        assert worth[method]["brier"] < worth["uncalibrated"]["brier"]
    for b in found.test["shown"][method]["reliability"]:
        if b["count"] >= 100:
            error = math.sqrt(2 * b["predicted"] * (1 - b["predicted"]) / b["count"])
            assert abs(b["predicted"] - b["observed"]) < 4 * error + 0.01


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
    n = len(g.valid)
    one = judge(model, g, "valid", 0)
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
    asked = len(np.unique(small_tree.with_reciprocals(small_tree.test)[:, :2], axis=0))
    for method in METHODS:
        for part in ("shown", "all"):
            worth = found.test[part]
            assert worth[method]["brier"] < worth["uncalibrated"]["brier"]
            assert sum(b["count"] for b in worth[method]["reliability"]) == worth["candidates"]
    assert found.test["shown"]["candidates"] == SHOWN * asked
    assert found.test["all"]["answers"] == 2 * len(small_tree.test)
    path = tmp_path / "calibration.json"
    path.write_text(found.to_json())
    again = Calibration.read(path)
    # To the bit: JSON keeps every digit of a float.
    assert again == found
    scores, places = np.linspace(-20, 20, 50).reshape(5, 10), np.arange(50, 0, -1).reshape(5, 10)
    assert again.probability(scores, places).shape == (5, 10)
    for method in METHODS:
        assert (np.diff(again.probability(scores, places, method).ravel()) >= 0).all()
        other = dataclasses.replace(found, method=method)
        assert other.probability(scores, places) == pytest.approx(found.probability(scores, places, method))
    earlier = {**json.loads(found.to_json()), "format": 1}
    for text in ("", "[]", "{}", '{"format": 2}', json.dumps(earlier)):
        path.write_text(text)
        with pytest.raises(RunError, match=r"calibration\.json cannot be read.*murp calibrate .*again"):
            Calibration.read(path)
    with pytest.raises(RunError, match="its format is 1, and this version of murp reads 2"):
        Calibration.read(path)


def test_what_cannot_be_calibrated(small_tree: KnowledgeGraph, model: MultiRelational) -> None:
    g = small_tree
    empty = KnowledgeGraph("t", g.entities, g.relations, g.train, g.valid[:0], g.test)
    with pytest.raises(DataError, match="valid split has no triples"):
        calibrate(model, empty, epoch=1)
    twice = KnowledgeGraph("t", g.entities, g.relations, g.train, g.train[:5], g.test)
    with pytest.raises(DataError, match="state every fact of valid"):
        calibrate(model, twice, epoch=1)
    model.parameters["entity"][:] = math.nan
    with pytest.raises(NotFiniteError, match="NaN or infinite"):
        calibrate(model, small_tree, epoch=1)


def test_where_every_candidate_is_true() -> None:
    facts = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1]], dtype=np.int32)
    names = Vocabulary("entity", ["a", "b"]), Vocabulary("relation", ["r"])
    found = calibrate(
        Table(np.eye(2)),  # type: ignore[arg-type]
        KnowledgeGraph("t", *names, facts[:0], facts[:2], facts[2:]),
        epoch=1,
    )
    assert 0.5 < found.probability(1.0, 1) < 1
