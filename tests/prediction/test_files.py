"""Files of questions in, files of answers out."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from murp import models
from murp.errors import DataError, MurpError, UnknownNameError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.models import MultiRelational
from murp.prediction import count_queries, predict, predict_file
from murp.prediction.calibration import Calibration
from murp.prediction.isotonic import Steps
from murp.prediction.platt import Platt
from murp.prediction.queries import read_queries, read_triples
from murp.prediction.results import json_lines, writing

TEXT = {
    "two.tsv": "n1\tparent\nn2\tnext\n",
    "header.tsv": "relation\thead\nparent\tn1\nnext\tn2\n",
    "open.txt": "n1\tparent\t?\nn2\tnext\t\n",
    "blank.csv": "\nhead,relation\r\nn1,parent\r\n\r\nn2,next\r\n",
    "quoted.csv": 'Subject,Predicate,Object\nn1,"parent",\n"n2",next,?\n',
    "lines.jsonl": '{"head": "n1", "relation": "parent"}\n\n{"relation": "next", "head": "n2", "tail": null}',
}


@pytest.fixture
def graph(small_tree: KnowledgeGraph) -> KnowledgeGraph:
    """With names: shared, or those of another's id."""
    names: list[str | None] = [f"node {i}" for i in range(63)]
    names[3:7] = ["twin", "twin", "n60", None]
    g = small_tree
    return KnowledgeGraph("tree", Vocabulary("entity", g.entities.ids, names), g.relations, g.train, g.valid, g.test)


@pytest.fixture
def model(graph: KnowledgeGraph) -> MultiRelational:
    model = models.murp(graph.num_entities, 2 * graph.num_relations, 4, dtype=torch.float64)
    model.initialise(0)
    model.parameters["entity"] *= 100
    model.parameters["subject_bias"].normal_(generator=torch.Generator().manual_seed(1))
    return model


def numbers(path: Path, graph: KnowledgeGraph, block: int = 2) -> list[tuple[int, int]]:
    blocks = list(read_queries(path, graph, block))
    assert all(len(b) <= block for b in blocks)
    return [pair for b in blocks for pair in zip(b.subjects.tolist(), b.relations.tolist(), strict=True)]


@pytest.mark.parametrize("name", TEXT)
def test_every_form_of_question_is_read(graph: KnowledgeGraph, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TEXT[name])
    assert numbers(tmp_path / name, graph) == [(1, 0), (2, 1)]
    if name != "lines.jsonl":
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(TEXT[name].encode()))
        assert numbers(tmp_path / f"{name}.gz", graph) == [(1, 0), (2, 1)]


def test_parquet_and_heads_asked_for(graph: KnowledgeGraph, tmp_path: Path) -> None:
    pq.write_table(pa.table({"relation": ["next", "parent"], "tail": ["n4", "node 9"]}), tmp_path / "q.parquet")
    assert numbers(tmp_path / "q.parquet", graph) == [(4, 3), (9, 2)]
    (tmp_path / "q.tsv").write_text("?\tnext\tn4\nn7\tparent\t?\n\tnext\tn5\n")
    assert numbers(tmp_path / "q.tsv", graph) == [(4, 3), (7, 0), (5, 3)]


def test_names_are_found_as_in_a_single_question(graph: KnowledgeGraph, tmp_path: Path) -> None:
    """An id goes before a name; a name must be unique."""
    (tmp_path / "q.tsv").write_text("".join(f"{x}\tnext\n" for x in ("node 9", "n9", "n60", "n6", "node 62")))
    found = [entity for entity, _ in numbers(tmp_path / "q.tsv", graph)]
    assert found == [graph.entities.find(x) for x in ("node 9", "n9", "n60", "n6", "node 62")] == [9, 9, 60, 6, 62]


BAD = {
    "a.tsv": ("n1\tparent\nn2\n", DataError, r"a\.tsv, line 2: 1 field instead of 2 \(head, relation\)"),
    "b.tsv": ("n1\tparent\n\nn2\tnext\tn3\n", DataError, r"b\.tsv, line 3: 3 fields instead of 2"),
    "c.csv": ("head,relation\nn1,parent\nn99,next\n", UnknownNameError, r"c\.csv, line 3: unknown entity 'n99'"),
    "d.tsv": ("n1\tparent\nn1\tchild\n", UnknownNameError, r"d\.tsv, line 2: unknown relation 'child'"),
    "e.tsv": ("n1\tnext\ntwin\tnext\n", UnknownNameError, r"e\.tsv, line 2: entity name 'twin' is ambiguous"),
    "f.tsv": ("n1\tnext\t?\nn1\tnext\tn2\n", DataError, r"f\.tsv, line 2: .* this row has both"),
    "g.tsv": ("n1\tnext\t?\n?\tnext\t?\n", DataError, r"g\.tsv, line 2: .* this row has neither"),
    "h.jsonl": ('{"head": "n1", "relation": "next"}\n{"head": "n1"\n', DataError, r"h\.jsonl, line 2: not JSON"),
    "i.jsonl": ('{"head": "n1", "rel": "next"}\n', DataError, r"i\.jsonl, line 1: not an object like"),
    "j.jsonl": ('{"head": ["n1"], "relation": "next"}\n', DataError, r"j\.jsonl, line 1: the head is \['n1'\]"),
    "k.tsv": ("n1\t\n", DataError, r"k\.tsv, line 1: the relation is empty"),
    "l.tsv": ("\n", DataError, r"l\.tsv: holds no rows"),
    "m.xlsx": ("", DataError, r"m\.xlsx: not a format that is known"),
    "n.parquet": ("no parquet", DataError, r"n\.parquet: cannot be read as Parquet"),
    "o.csv": ('head,relation\n"n1,next\n', DataError, r"o\.csv, line 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong_is_named_with_its_line_and_nothing_is_written(
    graph: KnowledgeGraph, model: MultiRelational, tmp_path: Path, name: str
) -> None:
    content, error, message = BAD[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(error, match=message):
        count_queries(tmp_path / name, graph)
    with pytest.raises(error, match=message):
        predict_file(model, graph, tmp_path / name, tmp_path / "out.csv")
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_bytes_that_are_not_utf_8(graph: KnowledgeGraph, tmp_path: Path) -> None:
    for name in ("q.tsv", "q.csv", "q.jsonl"):
        (tmp_path / name).write_bytes(
            b'{"head": "n1", "relation": "next"}\n'[: 40 * (name == "q.jsonl")] + b"\xff\t,\n"
        )
        with pytest.raises(DataError, match="UTF-8"):
            numbers(tmp_path / name, graph)


def test_triples_need_all_three(graph: KnowledgeGraph, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("n1\tparent\tn0\nn2\tnext\tnode 3\n".replace("node 3", "n3"))
    (triples,) = read_triples(tmp_path / "t.tsv", graph)
    assert triples.tolist() == [[1, 0, 0], [2, 1, 3]]
    (tmp_path / "t.tsv").write_text("n1\tparent\tn0\nn2\tnext\t?\n")
    with pytest.raises(DataError, match=r"t\.tsv, line 2: a triple is head, relation and tail"):
        list(read_triples(tmp_path / "t.tsv", graph))


CALIBRATION = Calibration("platt", Platt(0.5, 0.7, 1.0), Steps([0.0], [0.5]), 1, 0, {"questions": 1, "answers": 2}, {})


def rows_of(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    with path.open(newline="") as file:
        found = []
        for row in csv.DictReader(file):
            kinds = {"query": int, "rank": int, "score": float, "probability": float, "calibrated": float}
            found.append(
                {name: kinds.get(name, str)(text) for name, text in row.items()} | {"known": row["known"] or None}
            )
        return found


@pytest.mark.parametrize("form", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("new_only", [False, True])
@pytest.mark.parametrize("calibration", [None, CALIBRATION], ids=["plain", "calibrated"])
def test_a_file_is_answered_as_single_questions_are(
    graph: KnowledgeGraph,
    model: MultiRelational,
    tmp_path: Path,
    form: str,
    new_only: bool,
    calibration: Calibration | None,
) -> None:
    asked = [
        {"head": "n40", "relation": "next"},
        {"relation": "parent", "tail": "n0"},
        {"head": "n3", "relation": "parent"},
    ]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(q) + "\n" for q in asked))
    out, done = tmp_path / f"out{form}", []
    more: dict[str, Any] = {"k": 62, "new_only": new_only, "calibration": calibration}
    count = predict_file(model, graph, tmp_path / "q.jsonl", out, **more, advance=done.append)
    assert sum(done) == count_queries(tmp_path / "q.jsonl", graph) == 3
    rows = rows_of(out)
    assert len(rows) == count
    assert ("calibrated" in rows[0]) == (calibration is not None)
    for number, question in enumerate(asked, start=1):
        mine = [row for row in rows if row["query"] == number]
        single = predict(model, graph, **question, **more)  # type: ignore[arg-type]
        side = "tail" if "head" in question else "head"
        assert [row[side] for row in mine] == [p.id for p in single]
        assert {row["asked"] for row in mine} == {side}
        for row, p in zip(mine, single, strict=True):
            assert {name: row[name] for name in question} == question
            assert (row["rank"], row["name"], row["known"]) == (p.rank, p.name, p.known)
            assert row["score"] == pytest.approx(p.score, rel=1e-12, abs=1e-12)
            assert row["probability"] == pytest.approx(p.probability)
            if calibration is not None:
                assert row["calibrated"] == pytest.approx(p.calibrated)
        assert not (new_only and any(row["known"] for row in mine))
        assert set(question.values()).isdisjoint(row[side] for row in mine)


def test_an_output_that_exists_is_kept_unless_forced(
    graph: KnowledgeGraph, model: MultiRelational, tmp_path: Path
) -> None:
    (tmp_path / "q.tsv").write_text("n1\tparent\n")
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(MurpError, match="exists already"):
        predict_file(model, graph, tmp_path / "q.tsv", out)
    assert out.read_text() == "mine"
    predict_file(model, graph, tmp_path / "q.tsv", out, force=True)
    assert len(rows_of(out)) == 10
    for path, message in ((tmp_path / "out.txt", "must end in"), (tmp_path / "no" / "out.csv", "no folder")):
        with pytest.raises(MurpError, match=message):
            predict_file(model, graph, tmp_path / "q.tsv", path)


def fail_half_way(out: Path, table: pa.Table) -> None:
    with writing(out, table.schema) as write:
        write(table)
        raise KeyError("half way")


def test_a_failure_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array(["x"], pa.large_string())})
    for form in (".parquet", ".csv", ".jsonl"):
        out = tmp_path / f"out{form}"
        out.write_text("old")
        with pytest.raises(KeyError, match="half way"):
            fail_half_way(out, table)
        assert out.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 3


@given(
    rows=st.lists(
        st.tuples(
            st.none() | st.text(),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.floats(allow_nan=False, allow_infinity=False),
        ),
        max_size=8,
    )
)
def test_json_lines_say_what_the_table_holds(rows: list[tuple[str | None, int | None, float]]) -> None:
    columns: Any = zip(*rows, strict=True) if rows else ((), (), ())
    kinds = (pa.large_string(), pa.int64(), pa.float64())
    names = ("a text", 'a "number"', "x")
    table = pa.table({n: pa.array(list(c), k) for n, c, k in zip(names, columns, kinds, strict=True)})
    found = [json.loads(line) for line in json_lines(table).decode().split("\n")[:-1]]
    assert found == [dict(zip(names, row, strict=True)) for row in rows]


def test_memory_does_not_grow_with_the_number_of_questions(
    graph: KnowledgeGraph, model: MultiRelational, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked at once is bounded: by blocks when k is small, by cells when it is large."""
    from murp.prediction import answers, results

    (tmp_path / "q.tsv").write_text("n1\tparent\n" * 1000)
    sizes = []

    def spy(model: Any, subjects: np.ndarray[Any, Any], *rest: Any, **more: Any) -> Any:
        sizes.append(len(subjects))
        return top(model, subjects, *rest, **more)

    top = answers.top_objects
    monkeypatch.setattr(answers, "top_objects", spy)
    monkeypatch.setattr(results, "_CELLS_AT_ONCE", 630)
    predict_file(model, graph, tmp_path / "q.tsv", tmp_path / "out.parquet", k=1000)
    assert sizes == [10] * 100
