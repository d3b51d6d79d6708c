"""Protocol ``sampled``: among all entities it is ``standard``; its candidates and its interval are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from brute_force import graph_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from murp import models, registry
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError, NotFiniteError
from murp.evaluation import KnownFacts, compare_ranks, evaluate, rank, sampled
from murp.evaluation.ranks import Ranks, better_and_equal, queries_of
from murp.evaluation.sampled import better_or_half, candidates_of, intervals, sampled_ranks
from murp.graph import KnowledgeGraph
from murp.models import Model

ENTITIES, RELATIONS = 90, 3


def random_graph(facts: int = 240, test: int = 40) -> KnowledgeGraph:
    draw = np.random.default_rng(3)
    rows = np.stack([draw.integers(most, size=facts) for most in (ENTITIES, RELATIONS, ENTITIES)], axis=1)
    rows = np.unique(rows, axis=0)[draw.permutation(len(np.unique(rows, axis=0)))].astype(np.int32)
    return graph_of(ENTITIES, RELATIONS, train=rows[test:], test=rows[:test])


def trained_like(graph: KnowledgeGraph, name: str, dim: int = 4) -> Model:
    """A model whose tables are spread out, with entities that are equal to others, so that scores tie."""
    model = models.from_config(Config(model=name, dim=dim), graph.num_entities, graph.num_relations)
    model.initialise(0, 0.2)
    for table in model.tables:
        if table.of == "entity":
            model.parameters[table.name][1::5] = model.parameters[table.name][0]
    return model


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return random_graph()


@pytest.mark.parametrize("name", sorted(registry.MODELS))
def test_among_all_entities_it_is_standard(name: str, graph: KnowledgeGraph) -> None:
    model = trained_like(graph, name, dim=40 if name == "conve" else 4)
    known = KnownFacts.of(graph)
    by_models_scores = better_and_equal(model, graph.test, known, num_relations=RELATIONS)
    expected = 1 + by_models_scores[0] + by_models_scores[1] / 2
    found = sampled_ranks(model, graph.test, known, num_relations=RELATIONS, candidates=ENTITIES, seed=1)
    np.testing.assert_array_equal(np.concatenate([found.tail, found.head]), expected)
    assert (expected % 1 == 0.5).any(), "no ties: the test shows less than it should"


def test_few_rows_of_relations_are_read_at_a_time(graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relations may have matrices: those of a batch of many questions would not fit. Smaller batches change no rank."""
    model, known, sizes = trained_like(graph, "rescal"), KnownFacts.of(graph), []
    rows = Model.rows

    def counted(self: Model, role: str, *numbers: Any) -> Any:
        if role == "relation":
            sizes.append(len(numbers[0]))
        return rows(self, role, *numbers)

    monkeypatch.setattr(Model, "rows", counted)
    whole = sampled_ranks(model, graph.test, known, num_relations=RELATIONS, candidates=20)
    assert sizes == [2 * len(graph.test)]
    sizes.clear()
    monkeypatch.setattr(sampled, "NUMBERS", 100)
    part = sampled_ranks(model, graph.test, known, num_relations=RELATIONS, candidates=20)
    assert max(sizes) == 100 // (4 + 4 * 4)  # an entity's vector and a relation's matrix
    np.testing.assert_array_equal(whole.tail, part.tail)
    np.testing.assert_array_equal(whole.head, part.head)


def test_the_fused_ranks_of_the_published_models_are_met_too(graph: KnowledgeGraph) -> None:
    for name in ("murp", "mure"):
        model = trained_like(graph, name)
        standard = evaluate(model, graph, "test", "standard").to_dict(by_relation=True)
        sampled = evaluate(model, graph, "test", "sampled", candidates=ENTITIES + 7).to_dict(by_relation=True)
        for group in ("mrr", "mr", "hits@10", "by_direction", "by_relation", "by_seen"):
            assert sampled[group] == standard[group], group


def test_candidates_are_distinct_unknown_and_the_seeds_own(graph: KnowledgeGraph) -> None:
    known = KnownFacts.of(graph)
    questions = queries_of(graph.test, RELATIONS)
    first, again, other = (candidates_of(known, *questions, ENTITIES, 20, seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    stated = known.states(questions[0], questions[1], first.astype(np.int64))
    assert not stated.any()
    assert not (first == questions[2][:, None]).any()
    assert all(len(set(row)) == 20 for row in first.tolist())
    assert first.min() >= 0
    assert first.max() < ENTITIES
    # A question has the same candidates whatever is asked beside it, and fewer are the first of more.
    few = candidates_of(known, *(of[7:9] for of in questions), ENTITIES, 5, 4)
    np.testing.assert_array_equal(few, first[7:9, :5])


def test_every_entity_is_drawn_equally_often() -> None:
    nothing = KnownFacts(np.zeros((0, 3), np.int32), RELATIONS)
    count = 4000
    questions = np.arange(count) % ENTITIES, np.arange(count) % RELATIONS, np.zeros(count, np.int64)
    drawn = candidates_of(nothing, *questions, ENTITIES, 10, 0)
    distinct = np.unique(np.stack(questions[:2]), axis=1).shape[1]
    assert len(np.unique(drawn, axis=0)) == distinct  # equal questions, equal candidates
    each = np.concatenate([candidates_of(nothing, *questions, ENTITIES, 10, seed)[:90] for seed in range(60)])
    seen = np.bincount(each.ravel(), minlength=ENTITIES)
    assert seen[0] == 0  # the answer
    assert stats.chisquare(seen[1:]).pvalue > 1e-4
    pairs = each[:, 0].astype(np.int64) * ENTITIES + each[:, 1]
    assert len(np.unique(pairs)) > 0.6 * len(pairs)  # of 7,832 pairs about 3,900 come in 5,400 draws


def test_the_interval_covers_the_mean_over_facts_and_draws() -> None:
    """The truth is exact: of B better among M others, n drawn ones hold b by the hypergeometric distribution."""
    draw = np.random.default_rng(0)
    everything = np.unique(
        np.stack([draw.integers(most, size=600) for most in (ENTITIES, RELATIONS, ENTITIES)], axis=1), axis=0
    ).astype(np.int32)
    model = models.from_config(Config(model="distmult", dim=4), ENTITIES, RELATIONS)
    model.initialise(0, 1.0)
    nothing = KnownFacts(np.zeros((0, 3), np.int32), RELATIONS)
    better = better_and_equal(model, everything, nothing, num_relations=RELATIONS)[0].astype(int)
    n = 12
    counts = np.arange(n + 1)
    chances = stats.hypergeom.pmf(counts[None], ENTITIES - 1, better[:, None], n)
    truth = {"mrr": (chances / (1 + counts)).sum(1).mean()}
    truth |= {f"hits@{k}": chances[:, :k].sum(1).mean() for k in (1, 3)}
    tries, covered = 100, dict.fromkeys(truth, 0)
    for seed in range(tries):
        some = everything[draw.integers(len(everything), size=40)]
        graph = graph_of(ENTITIES, RELATIONS, test=some)
        report = evaluate(model, graph, "test", "sampled", candidates=n, seed=seed, known=nothing)
        for name, value in truth.items():
            between = report.intervals[name]
            assert between is not None
            covered[name] += between[0] <= value <= between[1]
    # 95 are expected; fewer than 84 come once in 100,000 times.
    assert min(covered.values()) >= 84, covered
    assert min(covered.values()) < tries, "intervals that always cover say nothing"


@given(facts=st.integers(1, 60), data=st.data())
def test_the_interval_of_few_hits_is_wilsons(facts: int, data: Any) -> None:
    """Where the two questions of a fact fare alike, they are one observation; where they differ, the interval is
    narrower."""
    hits = data.draw(st.integers(0, facts))
    alike = np.where(np.arange(facts) < hits, 1.0, 50.0)
    triples = np.zeros((facts, 3), np.int32)
    found = intervals(Ranks("sampled", triples, alike, alike), (1,))["hits@1"]
    exact = stats.binomtest(hits, facts).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx((exact.low, exact.high), abs=1e-7)
    apart = intervals(Ranks("sampled", triples, alike, alike[::-1].copy()), (1,))["hits@1"]
    assert apart is not None
    assert found is not None
    assert apart[1] - apart[0] <= found[1] - found[0] + 1e-12


def test_figures_name_their_candidates(graph: KnowledgeGraph) -> None:
    report = evaluate(trained_like(graph, "murp"), graph, "test", "sampled", candidates=10, seed=2)
    told = report.to_dict()
    assert (told["protocol"], told["candidates"], told["seed"]) == ("sampled", 10, 2)
    assert set(told["intervals"]) == {"mrr", "hits@1", "hits@3", "hits@10"}
    low, high = told["intervals"]["mrr"]
    assert 0 <= low < told["mrr"] < high <= 1
    assert "10 candidates" in repr(report)
    assert set(report.columns()["protocol"]) == {"sampled: 10 candidates a question, seed 2"}


def test_it_is_refused_where_it_could_be_taken_for_standard(graph: KnowledgeGraph) -> None:
    model, known = trained_like(graph, "mure"), KnownFacts.of(graph)
    with pytest.raises(ConfigError, match="sampled needs the number of candidates"):
        evaluate(model, graph, "test", "sampled")
    with pytest.raises(ConfigError, match="candidates belong to protocol sampled; standard ranks among all"):
        evaluate(model, graph, "test", candidates=10)
    for wrong in (0, -3, 2.5, True):
        with pytest.raises(ConfigError, match="whole number of at least 1"):
            evaluate(model, graph, "test", "sampled", candidates=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must not be mixed with those of all entities"):
        rank(model, graph.test, known, num_relations=RELATIONS, protocol="sampled")
    drawn = [evaluate(model, graph, "test", "sampled", candidates=n).ranks for n in (10, 20)]
    ids = {r: f"r{r}" for r in range(RELATIONS)}
    with pytest.raises(ConfigError, match=r"10 candidates.*20 candidates"):
        compare_ranks(drawn[0], drawn[1], "test", ids)


@pytest.mark.parametrize("name", ["murp", "complex", "transe"])
def test_many_questions_together_as_on_a_gpu(name: str, graph: KnowledgeGraph) -> None:
    model = models.from_config(Config(model=name, dim=4), ENTITIES, RELATIONS)
    model.initialise(0, 0.2)
    questions = queries_of(graph.test, RELATIONS)
    for candidates in (7, ENTITIES):  # of the latter some questions have fewer
        drawn = candidates_of(KnownFacts.of(graph), *questions, ENTITIES, candidates, 0)
        entities = torch.from_numpy(np.concatenate([questions[2][:, None], drawn], axis=1))
        subjects, relations = (torch.from_numpy(of) for of in questions[:2])
        rows = model.rows("subject", subjects), model.rows("relation", relations)
        together, alone = (of(model, *rows, entities) for of in (sampled._together, sampled._one_by_one))
        order = [better_or_half(of[:, 1:], of[:, :1], entities[:, 1:] >= 0) for of in (together, alone)]
        assert torch.equal(*order)


def test_nan_is_no_rank(graph: KnowledgeGraph) -> None:
    model = trained_like(graph, "distmult")
    model.parameters["entity"][5] = torch.nan
    with pytest.raises(NotFiniteError, match="NaN"):
        sampled_ranks(model, graph.test, KnownFacts.of(graph), num_relations=RELATIONS, candidates=ENTITIES, seed=0)


def test_the_facts_of_some_questions_are_those_of_all(graph: KnowledgeGraph) -> None:
    subjects, relations, _ = queries_of(graph.test, RELATIONS)
    some, every = KnownFacts.of_questions(graph, subjects, relations), KnownFacts.of(graph)
    for one, other in zip(some.objects_of(subjects, relations), every.objects_of(subjects, relations), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(some.objects) < len(every.objects)


@pytest.fixture
def run_folder(tmp_path: object, small_tree: KnowledgeGraph) -> str:
    import murp

    folder = f"{tmp_path}/run"
    murp.train(small_tree, out=folder, epochs=1, dim=2, device="cpu")
    return folder


def test_the_command_names_candidates_and_intervals(run_folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    split = ["--split", "valid"]
    assert main(["evaluate", run_folder, *split, "--protocol", "sampled", "--candidates", "7", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert "protocol sampled: 7 candidates a question, seed 3, filtered" in text
    assert "95 % intervals: MRR " in text
    assert "do not compare with other protocols" in text
    assert main(["evaluate", run_folder, *split, "--protocol", "sampled"]) == 1
    assert "--candidates 1000" in capsys.readouterr().err
    assert main(["evaluate", run_folder, *split, "--candidates", "7"]) == 1
    assert "belong to protocol sampled" in capsys.readouterr().err
