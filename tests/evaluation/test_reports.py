"""Reports: the figures, their groups and what they look like as JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
import torch
from brute_force import Case, TableScorer, brute_force_ranks, cases, graph_of, tuples
from hypothesis import given
from hypothesis import strategies as st

from murp.errors import ConfigError, DataError
from murp.evaluation import PROTOCOLS, KnownFacts, Metrics, Protocol, evaluate
from murp.graph import SPLITS, KnowledgeGraph, Split

KEYS = ["mrr", "mr", "hits@1", "hits@3", "hits@10", "queries"]


def figures(ranks: list[float]) -> dict[str, float | int | None]:
    """The definitions, one by one."""
    if not ranks:
        return dict.fromkeys(KEYS) | {"queries": 0}
    return {
        "mrr": fmean(1 / r for r in ranks),
        "mr": fmean(ranks),
        "hits@1": fmean(r <= 1 for r in ranks),
        "hits@3": fmean(r <= 3 for r in ranks),
        "hits@10": fmean(r <= 10 for r in ranks),
        "queries": len(ranks),
    }


def approximately(figures: dict[str, float | int | None]) -> dict[str, object]:
    return {key: None if value is None else pytest.approx(value, rel=1e-12) for key, value in figures.items()}


@given(case=cases(), protocol=st.sampled_from(PROTOCOLS), split=st.sampled_from(SPLITS))
def test_every_group_has_the_figures_of_its_ranks(case: Case, protocol: Protocol, split: Split) -> None:
    graph = case.graph
    triples = tuples(graph.split(split))
    if not triples:
        with pytest.raises(DataError, match=f"the {split} split has no triples"):
            evaluate(case.scorer, graph, split, protocol)
        return
    report = evaluate(case.scorer, graph, split, protocol).to_dict(by_relation=True)
    tail, head = brute_force_ranks(case.table, triples, tuples(graph.facts()), protocol)
    seen = {entity for h, _, t in tuples(graph.train) for entity in (h, t)}
    both = list(zip(triples, tail, strict=True)) + list(zip(triples, head, strict=True))

    assert (report["protocol"], report["split"]) == (protocol, split)
    assert {key: report[key] for key in KEYS} == approximately(figures(tail + head))
    assert report["by_direction"] == {
        "tail": approximately(figures(tail)),
        "head": approximately(figures(head)),
    }
    unseen = [not {h, t} <= seen for (h, _, t), _ in both]
    assert report["by_seen"] == {
        "seen": approximately(figures([r for (_, r), out in zip(both, unseen, strict=True) if not out])),
        "unseen": approximately(figures([r for (_, r), out in zip(both, unseen, strict=True) if out])),
    }
    assert report["by_relation"] == {
        f"r{relation}": approximately(figures([r for (_, of, _), r in both if of == relation]))
        for relation in sorted({relation for _, relation, _ in triples})
    }


@pytest.fixture
def small() -> Case:
    graph = graph_of(4, 2, train=[(0, 0, 1), (1, 0, 2)], test=[(0, 1, 1), (2, 0, 0)])
    return Case(graph, np.random.default_rng(0).normal(size=(4, 4, 4)))


@pytest.mark.parametrize("by_relation", [False, True])
def test_json_has_the_keys_of_the_contract_in_order(small: Case, by_relation: bool) -> None:
    report = evaluate(small.scorer, small.graph)
    written = json.loads(json.dumps(report.to_dict(by_relation=by_relation), allow_nan=False))
    groups = ["by_direction", "by_seen"] + ["by_relation"] * by_relation
    assert list(written) == ["protocol", "split", *KEYS, *groups]
    for group in groups:
        assert all(list(figures) == KEYS for figures in written[group].values())
    assert written["by_seen"]["unseen"] == dict.fromkeys(KEYS) | {"queries": 0}
    assert list(report.to_dict()) == ["protocol", "split", *KEYS, "by_direction", "by_seen"]


def test_attributes_are_the_overall_figures(small: Case) -> None:
    report = evaluate(small.scorer, small.graph, "test", "paper")
    assert (
        report.to_dict()
        | {
            "protocol": "paper",
            "split": "test",
            "mrr": report.mrr,
            "mr": report.mr,
            "hits@1": report.hits[1],
            "hits@3": report.hits[3],
            "hits@10": report.hits[10],
            "queries": report.queries,
        }
        == report.to_dict()
    )
    assert report.queries == 4
    assert list(report.by_relation) == ["r0", "r1"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_figure_is_shown_without_its_protocol(small: Case, protocol: Protocol) -> None:
    report = evaluate(small.scorer, small.graph, protocol=protocol)
    for shown in (report, report.overall, report.by_relation["r0"], report.by_seen["unseen"]):
        assert f"protocol={protocol!r}" in repr(shown)


def test_a_perfect_model_has_perfect_figures(small: Case) -> None:
    table = np.zeros_like(small.table)
    subjects, relations, objects = small.graph.with_reciprocals(small.graph.facts()).T
    table[subjects, relations, objects] = 1
    report = evaluate(TableScorer(table), small.graph)
    # Exact: means of ones.
    assert (report.mrr, report.mr, report.hits) == (1.0, 1.0, {1: 1.0, 3: 1.0, 10: 1.0})


def test_a_rank_between_two_places_is_no_hit_at_the_better_one() -> None:
    metrics = Metrics.of(np.array([1.5, 3.5, 10.0]), "standard")
    # Exact: a count divided by a count.
    assert metrics.hits == {1: 0.0, 3: 1 / 3, 10: 1.0}


def test_reciprocal_ranks_are_added_in_double_precision() -> None:
    ranks = np.arange(1, 200_001, dtype=np.float64)
    mrr = Metrics.of(ranks, "standard").mrr
    assert mrr == pytest.approx(math.fsum(1 / r for r in ranks) / len(ranks), rel=1e-13)


def test_prepared_facts_are_used(small: Case) -> None:
    only_test = KnownFacts(small.graph.with_reciprocals(small.graph.test), small.graph.num_relations)
    table = np.zeros_like(small.table)
    table[2, 0] = [1, 2, 0, 0]
    graph = graph_of(4, 2, train=[(2, 0, 1)], test=[(2, 0, 0)])
    assert evaluate(TableScorer(table), graph).by_direction["tail"].mr == 1
    assert evaluate(TableScorer(table), graph, known=only_test).by_direction["tail"].mr == 2


def test_what_cannot_be_evaluated_is_refused(small: Case) -> None:
    with pytest.raises(ConfigError, match="'tset': choose one of train, valid, test"):
        evaluate(small.scorer, small.graph, "tset")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="unknown protocol 'filtered'"):
        evaluate(small.scorer, small.graph, protocol="filtered")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="has 4 entities and the model 3"):
        evaluate(TableScorer(np.zeros((3, 4, 3))), small.graph)
    with pytest.raises(ConfigError, match="needs 384 bytes, and the bound is 100"):
        evaluate(small.scorer, small.graph, memory=100)


class RandomScorer:
    """Scores that cost next to nothing for any number of entities."""

    device = torch.device("cpu")

    def __init__(self, num_entities: int, num_relations: int) -> None:
        self.num_entities = num_entities
        draw = torch.Generator().manual_seed(0)
        self.subject, self.object = torch.randn(2, num_entities, 2, generator=draw)
        self.relation = torch.randn(2 * num_relations, 2, generator=draw)

    def score_objects(self, subjects: torch.Tensor, relations: torch.Tensor) -> torch.Tensor:
        return (self.subject[subjects] * self.relation[relations]) @ self.object.T


@pytest.mark.data
def test_wn18rr_is_counted_as_published(benchmark_data: Path) -> None:
    folder = benchmark_data / "WN18RR"
    if not folder.is_dir():
        pytest.skip("needs benchmark data: set MURP_DATA to a folder with WN18RR")
    graph = KnowledgeGraph.load(folder)
    report = evaluate(RandomScorer(graph.num_entities, graph.num_relations), graph)
    assert report.queries == 2 * 3134
    assert report.by_seen["unseen"].queries == 2 * 210
    assert report.by_relation["_hypernym"].queries == 2 * 1251
    assert len(report.by_relation) == 11
    assert report.mr == pytest.approx(graph.num_entities / 2, rel=0.2)
