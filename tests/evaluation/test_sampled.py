"""Protocol ``sampled``: among all entities it is ``standard``; its candidates and its interval are what they say."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from brute_force import graph_of
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import murp
from murp import models, registry
from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError, NotFiniteError
from murp.evaluation import KnownFacts, compare_ranks, evaluate, rank, sampled
from murp.evaluation.candidates import Drawn, Questions, candidates_of, drawn
from murp.evaluation.intervals import FEW, intervals
from murp.evaluation.ranks import Ranks, better_and_equal, queries_of
from murp.evaluation.sampled import batch_size, better_or_half, sampled_ranks
from murp.graph import SPLITS, Indices, KnowledgeGraph, Vocabulary
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


def ranks_among(model: Model, graph: KnowledgeGraph, candidates: int, seed: int = 0) -> Ranks:
    questions = Questions(graph, graph.test, KnownFacts.of(graph))
    parts = drawn(questions, candidates, seed, batch_size(model, candidates))
    return sampled_ranks(model, graph.test, parts, num_relations=RELATIONS)


def all_candidates(graph: KnowledgeGraph, candidates: int, seed: int, which: Indices | None = None) -> Drawn:
    questions = Questions(graph, graph.test, KnownFacts.of(graph))
    return candidates_of(questions, np.arange(len(questions)) if which is None else which, candidates, seed)


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return random_graph()


@pytest.mark.parametrize("name", sorted(registry.MODELS))
def test_among_all_entities_it_is_standard(name: str, graph: KnowledgeGraph) -> None:
    model = trained_like(graph, name, dim=40 if name == "conve" else 4)
    known = KnownFacts.of(graph)
    by_models_scores = better_and_equal(model, graph.test, known, num_relations=RELATIONS)
    expected = 1 + by_models_scores[0] + by_models_scores[1] / 2
    found = ranks_among(model, graph, ENTITIES, 1)
    np.testing.assert_array_equal(np.concatenate([found.tail, found.head]), expected)
    assert (expected % 1 == 0.5).any(), "no ties: the test shows less than it should"


def test_few_rows_of_relations_are_read_at_a_time(graph: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relations may have matrices: those of a batch of many questions would not fit. Smaller batches change no rank."""
    model, sizes = trained_like(graph, "rescal"), []
    rows = Model.rows

    def counted(self: Model, role: str, *numbers: Any) -> Any:
        if role == "relation":
            sizes.append(len(numbers[0]))
        return rows(self, role, *numbers)

    monkeypatch.setattr(Model, "rows", counted)
    whole = ranks_among(model, graph, 20)
    assert sizes == [2 * len(graph.test)]
    sizes.clear()
    monkeypatch.setattr(sampled, "NUMBERS", 100)
    part = ranks_among(model, graph, 20)
    assert max(sizes) == 100 // (4 + 4 * 4)  # an entity's vector and a relation's matrix
    np.testing.assert_array_equal(whole.tail, part.tail)
    np.testing.assert_array_equal(whole.head, part.head)


def test_the_fused_ranks_of_the_published_models_are_met_too(graph: KnowledgeGraph) -> None:
    for name in ("murp", "mure"):
        model = trained_like(graph, name)
        standard = evaluate(model, graph, "test", "standard").to_dict(by_relation=True)
        sampled = evaluate(model, graph, "test", "sampled", candidates=ENTITIES + 7).to_dict(by_relation=True)
        for group in ("mrr", "mr", "hits@10", "by_direction", "by_relation", "by_seen"):
            assert without_intervals(sampled[group]) == standard[group], group


def without_intervals(told: Any) -> Any:
    if not isinstance(told, dict):
        return told
    return {name: without_intervals(part) for name, part in told.items() if name != "intervals"}


def test_candidates_are_distinct_unknown_and_the_seeds_own(graph: KnowledgeGraph) -> None:
    known = KnownFacts.of(graph)
    questions = queries_of(graph.test, RELATIONS)
    first, again, other = (all_candidates(graph, 20, seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    stated = known.states(questions[0], questions[1], first.astype(np.int64))
    assert not stated.any()
    assert not (first == questions[2][:, None]).any()
    assert all(len(set(row)) == 20 for row in first.tolist())
    assert first.min() >= 0
    assert first.max() < ENTITIES
    # A question has the same candidates whatever is asked beside it, and fewer are the first of more.
    few = all_candidates(graph, 5, 4, np.arange(7, 9))
    np.testing.assert_array_equal(few, first[7:9, :5])


def test_every_entity_is_drawn_equally_often() -> None:
    count = 4000
    facts = np.stack([np.arange(count) % ENTITIES, np.arange(count) % RELATIONS, np.zeros(count)], axis=1)
    facts = facts.astype(np.int32)
    graph = graph_of(ENTITIES, RELATIONS, test=facts)
    questions = Questions(graph, facts, KnownFacts(facts[:0], RELATIONS))
    tails = candidates_of(questions, np.arange(count), 10, 0)
    assert len(np.unique(tails, axis=0)) == len(np.unique(facts, axis=0))  # equal questions, equal candidates
    each = np.concatenate([candidates_of(questions, np.arange(90), 10, seed) for seed in range(60)])
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
    found = intervals(np.stack([alike, alike], axis=1), (1,))["hits@1"]
    exact = stats.binomtest(hits, facts).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx((exact.low, exact.high), abs=1e-7)
    apart = intervals(np.stack([alike, alike[::-1]], axis=1), (1,))["hits@1"]
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
    assert set(report.columns()["protocol"]) == {"sampled: 10 candidates a question, seed 2; no estimate of standard"}


def test_every_part_of_a_report_has_its_interval(graph: KnowledgeGraph) -> None:
    """That of a part is that of its ranks alone; under another protocol there is none."""
    report = evaluate(trained_like(graph, "murp"), graph, "test", "sampled", candidates=10)
    told, ranks = report.to_dict(by_relation=True), report.ranks
    assert told["by_direction"]["head"]["intervals"] == intervals(ranks.head[:, None], (1, 3, 10))
    for relation in range(RELATIONS):
        own = graph.test[:, 1] == relation
        both = np.stack([ranks.tail[own], ranks.head[own]], axis=1)
        assert told["by_relation"][f"r{relation}"]["intervals"] == intervals(both, (1, 3, 10))
    columns = report.columns()
    low, high = report.by_relation["r1"].intervals["mrr"] or (0, 0)
    row = columns["name"].index("r1")
    assert (columns["mrr low"][row], columns["mrr high"][row]) == (low, high)
    assert f"mrr={report.mrr:.4f} ({report.intervals['mrr'][0]:.4f} to " in repr(report)  # type: ignore[index]
    standard = evaluate(trained_like(graph, "murp"), graph, "test")
    assert "intervals" not in standard.by_relation["r1"].to_dict()
    assert not [name for name in standard.columns() if "low" in name]


def test_a_relation_with_one_fact_has_no_interval_of_its_mrr() -> None:
    one = intervals(np.array([[1.0, 4.0]]), (1, 3))
    assert one["mrr"] is None
    assert one["hits@1"] is not None
    assert intervals(np.zeros((0, 2)), (1,)) == {"mrr": None, "hits@1": None}


@pytest.mark.parametrize("facts", [2, FEW, FEW + 1])
def test_equal_ranks_have_no_interval_of_their_mrr(facts: int) -> None:
    """However many there are: an interval without width would say that the next fact has this rank, too."""
    assert intervals(np.ones((facts, 2)), (1,))["mrr"] is None


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
    of_two = [evaluate(model, graph, "test", "sampled", candidates=n).ranks for n in (10, 20)]
    ids = {r: f"r{r}" for r in range(RELATIONS)}
    with pytest.raises(ConfigError, match=r"10 candidates.*20 candidates"):
        compare_ranks(of_two[0], of_two[1], "test", ids)


@pytest.mark.parametrize("name", ["murp", "complex", "transe"])
def test_many_questions_together_as_on_a_gpu(name: str, graph: KnowledgeGraph) -> None:
    model = models.from_config(Config(model=name, dim=4), ENTITIES, RELATIONS)
    model.initialise(0, 0.2)
    questions = queries_of(graph.test, RELATIONS)
    for candidates in (7, ENTITIES):  # of the latter some questions have fewer
        found = all_candidates(graph, candidates, 0)
        entities = torch.from_numpy(np.concatenate([questions[2][:, None], found], axis=1))
        subjects, relations = (torch.from_numpy(of) for of in questions[:2])
        rows = model.rows("subject", subjects), model.rows("relation", relations)
        together, alone = (of(model, *rows, entities) for of in (sampled._together, sampled._one_by_one))
        order = [better_or_half(of[:, 1:], of[:, :1], entities[:, 1:] >= 0) for of in (together, alone)]
        assert torch.equal(*order)


def test_nan_is_no_rank(graph: KnowledgeGraph) -> None:
    model = trained_like(graph, "distmult")
    model.parameters["entity"][5] = torch.nan
    with pytest.raises(NotFiniteError, match="NaN"):
        ranks_among(model, graph, ENTITIES)


def test_the_facts_of_some_questions_are_those_of_all(graph: KnowledgeGraph) -> None:
    subjects, relations, _ = queries_of(graph.test, RELATIONS)
    some, every = KnownFacts.of_questions(graph, subjects, relations), KnownFacts.of(graph)
    for one, other in zip(some.objects_of(subjects, relations), every.objects_of(subjects, relations), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(some.objects) < len(every.objects)


@pytest.fixture
def run_folder(tmp_path: object, small_tree: KnowledgeGraph) -> str:
    folder = f"{tmp_path}/run"
    murp.train(small_tree, out=folder, epochs=1, dim=2, device="cpu")
    return folder


def test_the_command_names_candidates_and_intervals(run_folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    split = ["--split", "valid"]
    assert main(["evaluate", run_folder, *split, "--protocol", "sampled", "--candidates", "7", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    assert "protocol sampled: 7 candidates a question, seed 3; no estimate of standard, filtered" in text
    assert "95 % intervals: MRR " in text
    assert "do not compare with other protocols" in text
    assert main(["evaluate", run_folder, *split, "--protocol", "sampled"]) == 1
    assert "--candidates 1000" in capsys.readouterr().err
    assert main(["evaluate", run_folder, *split, "--candidates", "7"]) == 1
    assert "belong to protocol sampled" in capsys.readouterr().err


def test_every_format_has_intervals_and_names_the_candidates(
    run_folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--split", "valid", "--protocol", "sampled", "--candidates", "7", "--seed", "3", "--by-relation"]
    report = murp.evaluate(run_folder, "valid", "sampled", candidates=7, seed=3)
    sample, (low, high) = report.ranks.sample, report.intervals["mrr"] or (0, 0)
    assert sample is not None
    name = "sampled: 7 candidates a question, seed 3; no estimate of standard"

    def printed(*words: str) -> str:
        assert main(["evaluate", *words]) == 0
        return capsys.readouterr().out

    for runs in ([run_folder], [run_folder, run_folder]):
        text = printed(*runs, *asked)
        assert f"{low:.3f} to {high:.3f}" in text.split("95 % intervals")[0]
        assert f"digest of the candidates: {sample.digest}" in text
        label = run_folder if len(runs) > 1 else "MRR"  # by relation
        for words, column in (([*runs, *asked], label), ([*runs, *asked[:-1]], "MRR")):
            row = next(csv.DictReader(io.StringIO(printed(*words, "--format", "csv"))))
            assert (row["protocol"], row["digest"]) == (name, sample.digest)
            assert (float(row[f"{column} low"]), float(row[f"{column} high"])) == (low, high)
            for form in ("markdown", "latex"):
                table = printed(*words, "--format", form)
                assert name in table
                assert sample.digest in table
                assert f"{low:.3f} to {high:.3f}" in table
        rows = csv.DictReader(io.StringIO(printed(*runs, *asked, "--format", "csv")))
        found = {row.get("part") or row["MRR of"]: (row[f"{label} low"], row[f"{label} high"]) for row in rows}
        for relation, metrics in report.by_relation.items():
            between = metrics.intervals["mrr"]
            assert found[relation] == (("", "") if between is None else tuple(map(str, between)))
    row = next(csv.DictReader(io.StringIO(printed(run_folder, *asked, "--format", "csv"))))
    assert (float(row["H@3 low"]), float(row["H@3 high"])) == report.intervals["hits@3"]


def test_runs_that_were_ranked_among_other_candidates_are_noticed(
    run_folder: str, small_tree: KnowledgeGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same facts, with the entities in another order."""
    order = np.arange(small_tree.num_entities)[::-1]
    splits = {}
    for split in SPLITS:
        facts = small_tree.split(split).copy()
        facts[:, [0, 2]] = order[facts[:, [0, 2]]]
        splits[split] = facts
    entities = Vocabulary("entity", small_tree.entities.ids.take(pa.array(order)))
    turned = KnowledgeGraph(small_tree.name, entities, small_tree.relations, **splits)
    other, stored = str(tmp_path / "other"), str(tmp_path / "c.parquet")
    murp.train(turned, out=other, epochs=1, dim=2, device="cpu")
    words = ["evaluate", run_folder, other, "--split", "valid", "--protocol", "sampled"]
    assert main([*words, "--candidates", "7"]) == 0
    assert "were ranked among other candidates" in capsys.readouterr().err
    murp.evaluate(run_folder, "valid", "sampled", candidates=7, save_candidates=stored)
    assert main([*words, "--candidates-from", stored]) == 0
    assert capsys.readouterr().err == ""
