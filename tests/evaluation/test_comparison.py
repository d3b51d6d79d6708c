"""Comparing two models: the bootstrap's intervals and p hold what they promise, and only what compares is compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from brute_force import graph_of
from numpy.typing import NDArray

import murp
from murp.errors import ConfigError, DataError
from murp.evaluation import Ranks, compare_ranks
from murp.evaluation.comparison import bootstrap
from murp.graph import KnowledgeGraph
from murp.runs.comparing import comparable
from runs_of_parts import SHORT

TRIALS, FACTS, SAMPLES = 600, 200, 300


def ranks_of(random: np.random.Generator, facts: int, shift: float) -> NDArray[np.float64]:
    """Ranks (facts, 2, 2) by two models of facts asked both ways: a hard fact is hard both ways and for both models."""
    hard = np.where(random.random((facts, 1, 1)) < 0.6, random.integers(2, 3000, (facts, 2, 1)), 1)
    of_fact = random.normal(0, 0.7, (facts, 1, 2))  # what a model makes of a fact, both ways
    noise = of_fact + random.normal(0, 0.5, (facts, 2, 2)) + np.array([0.0, shift])
    return np.maximum(1, np.round(hard * np.exp(noise) / 2))


def differences(random: np.random.Generator, facts: int, shift: float) -> NDArray[np.float64]:
    """Those of the reciprocal ranks, (facts, 2)."""
    a, b = np.moveaxis(1 / ranks_of(random, facts, shift), 2, 0)
    return a - b


@pytest.mark.parametrize("shift", [0.0, 0.4], ids=["no difference", "A is better"])
def test_the_interval_covers_the_truth_as_often_as_it_says(shift: float) -> None:
    random = np.random.default_rng(1)
    truth = differences(random, 400_000, shift).mean()
    found = [bootstrap(differences(random, FACTS, shift).mean(axis=1), SAMPLES, random) for _ in range(TRIALS)]
    covered = np.mean([low <= truth <= high for low, high, _ in found])  # type: ignore[operator]
    assert covered == pytest.approx(0.95, abs=0.027)  # three standard errors of a share of 600
    powerful = np.mean([p < 0.05 for *_, p in found])  # type: ignore[operator]
    assert powerful == pytest.approx(0.05, abs=0.027) if shift == 0 else powerful > 0.5


def test_p_is_uniform_where_there_is_no_difference() -> None:
    random = np.random.default_rng(2)
    p = [bootstrap(differences(random, FACTS, 0.0).mean(axis=1), SAMPLES, random)[2] for _ in range(TRIALS)]
    distance = np.abs(np.sort(np.array(p, dtype=float)) - (np.arange(TRIALS) + 0.5) / TRIALS).max()
    assert distance < 1.63 / TRIALS**0.5  # Kolmogorov and Smirnov, 1 in 100; the draws are fixed


def test_drawing_the_two_queries_of_a_fact_apart_would_promise_too_much() -> None:
    """Why facts are drawn: where both queries of a fact fare alike, an interval over queries is too narrow by √2."""
    random = np.random.default_rng(3)
    alike = (np.repeat(differences(random, FACTS, 0.0).mean(axis=1), 2) for _ in range(TRIALS // 2))
    found = [bootstrap(values, SAMPLES, random) for values in alike]
    assert np.mean([low <= 0 <= high for low, high, _ in found]) < 0.9  # type: ignore[operator]


@pytest.mark.parametrize("facts", [3, 5, 10, 30])
def test_few_facts_do_not_make_a_difference_out_of_none(facts: int) -> None:
    random = np.random.default_rng(facts)
    found = [bootstrap(differences(random, facts, 0.0).mean(axis=1), 200, random) for _ in range(300)]
    wrong = np.mean([p is not None and p < 0.05 for *_, p in found])
    assert wrong <= 0.06


def test_p_is_below_a_twentieth_exactly_where_the_interval_leaves_out_0() -> None:
    random = np.random.default_rng(4)
    for samples in (100, 137, 999):
        for _ in range(60):
            low, high, p = bootstrap(differences(random, 50, 0.3).mean(axis=1), samples, random)
            assert low is not None
            assert high is not None
            assert p is not None
            assert (p < 0.05) == (not low <= 0 <= high)


def test_what_leaves_nothing_to_judge_by() -> None:
    random = np.random.default_rng(0)
    assert bootstrap(np.zeros(7), 100, random) == (0.0, 0.0, 1.0)
    assert bootstrap(np.array([0.5]), 100, random) == (None, None, None)
    assert bootstrap(np.full(9, 0.5), 100, random) == (None, None, None)


def made(random: np.random.Generator, facts: int = 60) -> tuple[Ranks, Ranks]:
    triples = np.stack([np.arange(facts), np.arange(facts) % 3, np.arange(facts) + 1], axis=1).astype(np.int32)
    a, b = np.moveaxis(ranks_of(random, facts, 0.3), 2, 0)
    return Ranks("standard", triples, a[:, 0], a[:, 1]), Ranks("standard", triples, b[:, 0], b[:, 1])


def test_figures_by_definition_and_the_same_for_the_same_seed() -> None:
    a, b = made(np.random.default_rng(5))
    names = {0: "zero", 1: "one", 2: "two"}
    found = compare_ranks(a, b, "test", names, samples=200, seed=3)
    assert found == compare_ranks(a, b, "test", names, samples=200, seed=3)
    assert found != compare_ranks(a, b, "test", names, samples=200, seed=4)
    mrr = [np.mean(1 / np.concatenate([of.tail, of.head])) for of in (a, b)]
    one = found.overall
    assert (one.mrr_a, one.mrr_b, one.difference) == pytest.approx((*mrr, mrr[0] - mrr[1]))
    assert one.queries == 120
    assert one.low < one.difference < one.high  # type: ignore[operator]
    assert [part.queries for part in found.by_relation.values()] == [40, 40, 40]
    second = a.triples[:, 1] == 1
    assert found.by_relation["one"].mrr_a == pytest.approx(np.mean(1 / np.stack([a.tail[second], a.head[second]])))
    turned = compare_ranks(b, a, "test", names, samples=200, seed=3).overall
    assert (turned.difference, turned.low, turned.p) == pytest.approx((-one.difference, -one.high, one.p))  # type: ignore[operator]


def test_ranks_that_are_not_of_the_same_queries_are_refused() -> None:
    a, b = made(np.random.default_rng(6))
    with pytest.raises(ConfigError, match="two protocols, standard and paper"):
        compare_ranks(a, Ranks("paper", b.triples, b.tail, b.head), "test", {})
    with pytest.raises(ConfigError, match="not of the same facts"):
        compare_ranks(a, Ranks("standard", b.triples[::-1], b.tail, b.head), "test", {})
    with pytest.raises(ConfigError, match="samples must be at least 100"):
        compare_ranks(a, b, "test", {}, samples=99)


TRAIN, TEST = [(0, 0, 1), (1, 1, 2), (2, 0, 3)], [(0, 1, 2), (3, 0, 1)]


def test_graphs_that_do_not_compare_are_refused() -> None:
    graph = graph_of(4, 2, train=TRAIN, test=TEST)
    with pytest.raises(DataError, match="do not have the same test facts"):
        comparable(graph, graph_of(4, 2, train=TRAIN, test=[(0, 1, 2), (3, 0, 2)]), "test")
    with pytest.raises(DataError, match="know different facts"):
        comparable(graph, graph_of(4, 2, train=[*TRAIN, (3, 1, 0)], test=TEST), "test")
    with pytest.raises(DataError, match=r"same entities: 4 and 5 \('e4' is only in the second\)"):
        comparable(graph, graph_of(5, 2, train=TRAIN, test=TEST), "test")
    comparable(graph, graph_of(4, 2, train=TEST, test=TRAIN), "valid")


def test_runs_on_the_same_facts_in_another_order_and_numbering_compare(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    """The facts are the same by their names: a run compared with itself, renumbered, has no difference at all."""
    settings = {**SHORT, "negatives": 5}
    run = murp.train(small_tree, out=tmp_path / "a", **settings)
    order = np.random.default_rng(0).permutation(small_tree.num_entities)
    other = renumbered(small_tree, order)
    same = murp.train(small_tree, out=tmp_path / "b", **settings)
    same.graph = other
    for name in ("entity", "subject_bias", "object_bias"):
        same.model.parameters[name] = same.model.parameters[name][order.copy()]
    found = run.compare(same, samples=100)
    assert (found.overall.difference, found.overall.p) == (0.0, 1.0)
    assert found.overall.mrr_a == pytest.approx(run.evaluate("test").mrr)
    frame = murp.compare(run, same, samples=100).to_dataframe()
    assert list(frame.relation) == list(run.evaluate("test").by_relation)
    assert list(frame.columns) == ["relation", "mrr_a", "mrr_b", "difference", "low", "high", "p", "queries"]


def renumbered(graph: KnowledgeGraph, order: NDArray[np.int64]) -> KnowledgeGraph:
    """The same graph, its entities numbered in another order and its facts backwards."""
    import pyarrow as pa

    from murp.graph import Vocabulary

    new = np.argsort(order).astype(np.int32)
    parts = [graph.split(name)[::-1] for name in ("train", "valid", "test")]
    triples = [np.stack([new[p[:, 0]], p[:, 1], new[p[:, 2]]], axis=1) for p in parts]
    names = Vocabulary("entity", graph.entities.ids.take(pa.array(order)))
    return KnowledgeGraph(graph.name, names, graph.relations, *triples)
