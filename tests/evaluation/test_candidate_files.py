"""Files of candidates: what they hold, that they give the same report, and which of them are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from brute_force import graph_of
from test_sampled import ENTITIES, RELATIONS, random_graph, ranks_among, trained_like

import murp
from murp.cli.main import main
from murp.errors import ConfigError, DataError, MurpError, NotFiniteError
from murp.evaluation import KnownFacts, candidate_files, evaluate, sampled
from murp.evaluation.candidates import Questions, drawn
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import Model

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def graph() -> KnowledgeGraph:
    return random_graph()


@pytest.fixture(scope="module")
def model(graph: KnowledgeGraph) -> Model:
    return trained_like(graph, "murp")


@pytest.fixture
def file(model: Model, graph: KnowledgeGraph, tmp_path: Path) -> Path:
    path = tmp_path / "candidates.parquet"
    evaluate(model, graph, "test", "sampled", candidates=12, seed=5, save_candidates=path)
    return path


def changed(file: Path, change: Callable[[Rows], object]) -> Path:
    """A file from elsewhere: the rows after a change, nothing in the metadata."""
    rows = pq.read_table(file).to_pylist()
    change(rows)
    path = file.with_name("changed.parquet")
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("candidates", [1, 12, ENTITIES])
def test_stored_candidates_give_the_same_report(
    candidates: int, model: Model, graph: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written and read in small parts, and with all entities, of which questions have different numbers left."""
    path = tmp_path / "c.parquet"
    monkeypatch.setattr(candidate_files, "CELLS", 100)
    by_seed = evaluate(model, graph, "test", "sampled", candidates=candidates, seed=3, save_candidates=path)
    monkeypatch.setattr(sampled, "CELLS", 500)
    stored = evaluate(model, graph, "test", "sampled", candidates_from=path)
    np.testing.assert_array_equal(stored.ranks.tail, by_seed.ranks.tail)
    np.testing.assert_array_equal(stored.ranks.head, by_seed.ranks.head)
    assert stored.to_dict(by_relation=True) == by_seed.to_dict(by_relation=True)
    assert (stored.ranks.sample, repr(stored)) == (by_seed.ranks.sample, repr(by_seed))


def test_a_file_has_questions_and_candidates_by_id(file: Path, graph: KnowledgeGraph) -> None:
    rows = pq.read_table(file).to_pylist()
    facts = {tuple(fact) for fact in graph.test.tolist()}
    asked = {
        (graph.entities.find(row["head"]), graph.relations.find(row["relation"]), graph.entities.find(row["tail"]))
        for row in rows
    }
    assert asked == facts
    assert [row["asked"] for row in rows] == ["tail"] * len(facts) + ["head"] * len(facts)
    every = {tuple(fact) for fact in graph.facts().tolist()}
    for row in rows:
        head, relation, tail = (
            of.find(row[name])
            for of, name in ((graph.entities, "head"), (graph.relations, "relation"), (graph.entities, "tail"))
        )
        assert len(set(row["candidates"])) == len(row["candidates"]) == 12
        for candidate in map(graph.entities.find, row["candidates"]):
            fact = (head, relation, candidate) if row["asked"] == "tail" else (candidate, relation, tail)
            assert fact not in every


def test_another_order_of_rows_and_candidates_is_the_same_sample(
    file: Path, model: Model, graph: KnowledgeGraph
) -> None:
    """The report of a file that names no seed names the digest."""

    def shuffle(rows: Rows) -> None:
        np.random.default_rng(0).shuffle(rows)  # type: ignore[arg-type]
        for row in rows:
            row["candidates"] = row["candidates"][::-1]

    first = evaluate(model, graph, "test", "sampled", candidates=12, seed=5)
    second = evaluate(model, graph, "test", "sampled", candidates_from=changed(file, shuffle))
    np.testing.assert_array_equal(first.ranks.tail, second.ranks.tail)
    np.testing.assert_array_equal(first.ranks.head, second.ranks.head)
    of_first, of_second = first.ranks.sample, second.ranks.sample
    assert of_first is not None
    assert of_second is not None
    assert of_first.digest == of_second.digest
    assert (of_first.seed, of_second.seed) == (5, None)
    assert f"12 candidates a question, digest {of_first.digest}; no estimate of standard" in repr(second)


def test_the_digest_is_of_ids_and_changes_with_every_candidate(file: Path, model: Model, graph: KnowledgeGraph) -> None:
    def digest(**given: Any) -> str:
        sample = evaluate(model, graph, "test", "sampled", **given).ranks.sample
        assert sample is not None
        return sample.digest

    def other(rows: Rows) -> None:
        row = rows[30]
        known = {row["head"], row["tail"], *row["candidates"]}
        row["candidates"][4] = next(
            name
            for name in graph.entities.ids.to_pylist()
            if name not in known and not (graph.facts() == fact_of(graph, row, name)).all(axis=1).any()
        )

    own = digest(candidates=12, seed=5)
    assert own == digest(candidates=12, seed=5)
    assert len({own, digest(candidates=12, seed=6), digest(candidates=11, seed=5)}) == 3
    assert digest(candidates_from=changed(file, other)) != own


def fact_of(graph: KnowledgeGraph, row: dict[str, Any], candidate: str) -> list[int]:
    head, tail = (candidate, row["tail"]) if row["asked"] == "head" else (row["head"], candidate)
    return [graph.entities.find(head), graph.relations.find(row["relation"]), graph.entities.find(tail)]


def test_stored_candidates_are_those_of_another_numbering_too(file: Path, model: Model, graph: KnowledgeGraph) -> None:
    """The same facts with the entities in another order: the seed draws others, the file has the same."""
    order = np.random.default_rng(1).permutation(ENTITIES)
    numbers = np.argsort(order)
    entities = Vocabulary("entity", graph.entities.ids.take(pa.array(order)))
    parts = {}
    for name in ("train", "valid", "test"):
        facts = graph.split(name).copy()  # type: ignore[arg-type]
        facts[:, [0, 2]] = numbers[facts[:, [0, 2]]]
        parts[name] = facts
    other = KnowledgeGraph("other", entities, graph.relations, **parts)
    moved = trained_like(other, "murp")
    for table in moved.tables:
        rows = model.parameters[table.name]
        moved.parameters[table.name] = rows[order] if table.of == "entity" else rows
    first = evaluate(model, graph, "test", "sampled", candidates_from=file)
    second = evaluate(moved, other, "test", "sampled", candidates_from=file)
    np.testing.assert_array_equal(first.ranks.tail, second.ranks.tail)
    np.testing.assert_array_equal(first.ranks.head, second.ranks.head)
    assert first.ranks.sample == second.ranks.sample
    assert evaluate(moved, other, "test", "sampled", candidates=12, seed=5).ranks.sample != first.ranks.sample


def test_a_fact_that_is_in_the_split_twice_is_stored_once(model: Model, graph: KnowledgeGraph, tmp_path: Path) -> None:
    test = np.concatenate([graph.test[:9], graph.test[2:5]])
    twice = graph_of(ENTITIES, RELATIONS, train=graph.train, test=test)
    path = tmp_path / "c.parquet"
    by_seed = evaluate(model, twice, "test", "sampled", candidates=9, save_candidates=path)
    assert pq.read_metadata(path).num_rows == 18
    stored = evaluate(model, twice, "test", "sampled", candidates_from=path)
    np.testing.assert_array_equal(stored.ranks.tail, by_seed.ranks.tail)
    np.testing.assert_array_equal(stored.ranks.head, by_seed.ranks.head)
    assert stored.ranks.sample == by_seed.ranks.sample


def test_names_are_found_as_ids_are(file: Path, model: Model, graph: KnowledgeGraph) -> None:
    ids = graph.entities.ids.to_pylist()
    entities = Vocabulary("entity", ids, [f"name of {id}" for id in ids])
    named = KnowledgeGraph("named", entities, graph.relations, graph.train, graph.valid, graph.test)

    def by_name(rows: Rows) -> None:
        for row in rows:
            row["head"] = f"name of {row['head']}"
            row["candidates"] = [f"name of {id}" for id in row["candidates"]]

    expected = evaluate(model, graph, "test", "sampled", candidates_from=file)
    found = evaluate(model, named, "test", "sampled", candidates_from=changed(file, by_name))
    np.testing.assert_array_equal(found.ranks.tail, expected.ranks.tail)
    np.testing.assert_array_equal(found.ranks.head, expected.ranks.head)


def answer(row: dict[str, Any]) -> str:
    return str(row[row["asked"]])


def known_answer(rows: Rows, graph: KnowledgeGraph) -> tuple[int, str]:
    """A row, and another known answer to its question."""
    facts = {tuple(fact) for fact in graph.facts().tolist()}
    for number, row in enumerate(rows):
        for name in graph.entities.ids.to_pylist():
            if name != answer(row) and tuple(fact_of(graph, row, name)) in facts:
                return number, name
    raise AssertionError("no question has a second answer")


REFUSED: list[tuple[Callable[[Rows], object], str]] = [
    (lambda rows: rows[6]["candidates"].__setitem__(1, "nobody"), "row 7: unknown entity 'nobody'"),
    (lambda rows: rows[6].update(tail="nobody"), "row 7: unknown entity 'nobody'"),
    (lambda rows: rows[6].update(relation="nothing"), "row 7: unknown relation 'nothing'"),
    (lambda rows: rows[6].update(head=None), "row 7: the field head is empty"),
    (lambda rows: rows[6].update(asked="relation"), "row 7: asked is neither head nor tail"),
    (lambda rows: rows[6].update(candidates=None), "row 7: it has no list of candidates"),
    (lambda rows: rows[6]["candidates"].__setitem__(3, None), "row 7: one of its candidates is empty"),
    (lambda rows: rows[6]["candidates"].__setitem__(3, answer(rows[6])), "row 7: the candidate .* is the answer"),
    (
        lambda rows: rows[6]["candidates"].__setitem__(3, rows[6]["candidates"][5]),
        "row 7: .* comes twice",
    ),
    (lambda rows: rows[6]["candidates"].pop(), "row 7: it has 11 candidates instead of 12"),
    (lambda rows: rows[6]["candidates"].clear(), "row 7: it has 0 candidates instead of 12"),
    (lambda rows: rows.append(dict(rows[6])), "row 81: an earlier row has the same question"),
    (lambda rows: rows.insert(7, dict(rows[6])), "row 8: an earlier row has the same question"),
    (lambda rows: rows[6].update(head=rows[6]["tail"]), "row 7: its fact is not in the split"),
    (lambda rows: rows.pop(50), r"1 of 80 questions of the split are missing; the first asks for the head of \("),
    (lambda rows: rows.__delitem__(slice(40, None)), "40 of 80 questions of the split are missing"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=[message for _, message in REFUSED])
@pytest.mark.parametrize("cells", [2**22, 100])
def test_wrong_rows_are_named(
    change: Callable[[Rows], object],
    message: str,
    cells: int,
    file: Path,
    model: Model,
    graph: KnowledgeGraph,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampled, "CELLS", cells)
    with pytest.raises(MurpError, match=message):
        evaluate(model, graph, "test", "sampled", candidates_from=changed(file, change))


def test_a_known_answer_is_no_candidate(file: Path, model: Model, graph: KnowledgeGraph) -> None:
    row, name = known_answer(pq.read_table(file).to_pylist(), graph)
    path = changed(file, lambda rows: rows[row]["candidates"].__setitem__(0, name))
    with pytest.raises(DataError, match=f"row {row + 1}: the candidate {name} is a known answer"):
        evaluate(model, graph, "test", "sampled", candidates_from=path)


def test_a_file_that_is_none_is_refused(model: Model, graph: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    with pytest.raises(DataError, match="no file of candidates at"):
        evaluate(model, graph, "test", "sampled", candidates_from=path)
    path.write_text("head\trelation\ttail\n")
    with pytest.raises(DataError, match="cannot be read as Parquet"):
        evaluate(model, graph, "test", "sampled", candidates_from=path)
    pq.write_table(pa.table({"head": ["a"], "tail": ["b"]}), path)
    with pytest.raises(DataError, match="has no column relation, asked, candidates"):
        evaluate(model, graph, "test", "sampled", candidates_from=path)
    pq.write_table(pa.table({name: ["a"] for name in candidate_files.COLUMNS}), path)
    with pytest.raises(DataError, match="It must have lists of ids"):
        evaluate(model, graph, "test", "sampled", candidates_from=path)


def test_options_that_do_not_go_together(file: Path, model: Model, graph: KnowledgeGraph, tmp_path: Path) -> None:
    for given in ({"candidates": 12}, {"seed": 1}, {"save_candidates": tmp_path / "d.parquet"}):
        with pytest.raises(ConfigError, match="leave out --candidates, --seed and --save-candidates"):
            evaluate(model, graph, "test", "sampled", candidates_from=file, **given)  # type: ignore[arg-type]
    for given in ({"candidates_from": file}, {"save_candidates": tmp_path / "d.parquet"}):
        with pytest.raises(ConfigError, match="belong to protocol sampled"):
            evaluate(model, graph, **given)  # type: ignore[arg-type]
    for path, message in (
        (file, "exists already"),
        (tmp_path / "c.csv", "ends in .parquet"),
        (tmp_path / "none" / "c.parquet", "there is no folder"),
    ):
        with pytest.raises(MurpError, match=message):
            evaluate(model, graph, "test", "sampled", candidates=3, save_candidates=path)


def test_an_evaluation_that_fails_leaves_no_file(graph: KnowledgeGraph, tmp_path: Path) -> None:
    model = trained_like(graph, "distmult")
    model.parameters["entity"][5] = np.nan
    parts = Questions(graph, graph.test, KnownFacts.of(graph))

    def fails_after_writing() -> None:
        with candidate_files.writing(tmp_path / "c.parquet", parts) as writer:
            for part in drawn(parts, 5, 0, 30):
                writer.add(*part)
            ranks_among(model, graph, ENTITIES)

    with pytest.raises(NotFiniteError):
        fails_after_writing()
    assert list(tmp_path.iterdir()) == []


def test_the_command_and_python(tmp_path: Path, small_tree: KnowledgeGraph, capsys: pytest.CaptureFixture[str]) -> None:
    run, path = str(tmp_path / "run"), str(tmp_path / "c.parquet")
    murp.train(small_tree, out=run, epochs=1, dim=2, device="cpu")
    words = ["evaluate", run, "--split", "valid", "--protocol", "sampled", "--json"]
    assert main([*words, "--candidates", "7", "--save-candidates", path]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main([*words, "--candidates-from", path]) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert len(told["digest"]) == 16
    report = murp.evaluate(run, "valid", "sampled", candidates_from=path, device="cpu")
    assert json.loads(json.dumps(report.to_dict())) == told
    other = str(tmp_path / "d.parquet")
    murp.evaluate(run, "valid", "sampled", candidates=7, save_candidates=other, device="cpu")
    assert pq.read_table(other).equals(pq.read_table(path))
    assert main(["evaluate", run, run, *words[2:], "--candidates", "7", "--save-candidates", other + "x"]) == 1
    assert "writes the candidates of one run" in capsys.readouterr().err
