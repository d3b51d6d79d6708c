"""What a card says of an entity and what points are coloured by, held against plain computations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explorer_runs import client_of, made_run, nasty_graph

from murp.errors import DataError
from murp.explorer.collection import Collection
from murp.explorer.columns import column, communities, read_columns
from murp.explorer.columns import names as column_names
from murp.explorer.facts import known_facts_of, likely_of, supports
from murp.graph import KnowledgeGraph
from murp.runs import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    from trees import tree

    return made_run(tmp_path_factory.mktemp("facts"), nasty_graph(tree()))


@pytest.fixture(scope="module")
def collection(run: Run) -> Collection:
    return Collection([run])


def test_likely_facts_are_the_best_new_answers_of_the_entitys_relations(run: Run, collection: Collection) -> None:
    entity = 5
    expected = []
    facts = run.graph.facts()
    for relation in range(run.graph.num_relations):
        name = run.graph.relations.id(relation)
        for side, column_, given in (("tail", 0, "head"), ("head", 2, "tail")):
            if (facts[facts[:, 1] == relation][:, column_] == entity).any():
                found = run.predict(relation=name, k=3, new_only=True, **{given: f"n{entity}"})
                expected += [(p.probability, name, side, p.id) for p in found]
    expected = sorted(expected, key=lambda one: -one[0])[:5]
    found = likely_of(collection, collection.prepared[0], entity)
    assert [(one["relation"]["id"], one["side"], one["id"]) for one in found] == [one[1:] for one in expected]
    assert [one["probability"] for one in found] == pytest.approx([one[0] for one in expected])
    assert all(one["calibrated"] is None for one in found)


def test_known_facts_are_all_there_with_their_split(run: Run, collection: Collection) -> None:
    entity, told = 5, set()
    for group in known_facts_of(collection, entity):
        assert group["total"] == len(group["facts"])  # few enough to be shown
        for fact in group["facts"]:
            told.add((group["relation"]["id"], group["side"], fact["id"], fact["known"]))
    expected = set()
    for split in ("train", "valid", "test"):
        for h, r, t in run.graph.split(split).tolist():
            name = run.graph.relations.id(r)
            if h == entity:
                expected.add((name, "tail", f"n{t}", split))
            if t == entity:
                expected.add((name, "head", f"n{h}", split))
    assert told == expected


def test_why_names_training_facts_nearest_first_and_not_the_answer_itself(run: Run, collection: Collection) -> None:
    train = {tuple(fact) for fact in run.graph.train.tolist()}
    h, r, t = run.graph.train[0].tolist()
    found = supports(collection, collection.prepared[0], h, r, t, 5)
    distances = [one["distance"] for one in found]
    assert distances == sorted(distances)
    ends = [(int(one["head"]["id"][1:]), r, int(one["tail"]["id"][1:])) for one in found]
    assert set(ends) <= train - {(h, r, t)}


def test_columns_of_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "columns.tsv"
    file.write_text("id\tkind\tyear\nn1\tanimal\t1900\nn2\tplant\t2000\nnode 9\tanimal\t\n", encoding="utf-8")
    shown = Collection([run], read_columns(file, run.graph))
    client = client_of(run)
    assert client.get("/api/column", params={"name": "kind"}).status_code == 404  # another explorer has no such file
    kinds = column(shown, 1, "kind")
    assert kinds["is_category"]
    assert kinds["labels"] == ["animal", "plant", "others"]
    years = column(shown, 1, "year")
    assert (years["labels"], years["is_category"]) == (["1900", "2000", "none"], False)
    file.write_text("id\tkind\nn1\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 2: 1 columns, and the first row has 2"):
        read_columns(file, run.graph)
    file.write_text("id\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1: a file of columns is tab-separated"):
        read_columns(file, run.graph)
    file.write_text("id\tkind\nnobody\tx\n", encoding="utf-8")
    with pytest.raises(DataError, match="none of its 1 rows begins with an entity of"):
        read_columns(file, run.graph)


def test_a_column_of_the_names_file(run: Run, tmp_path: Path) -> None:
    """Names and glosses are no colours, and a file of names may have more entities than the graph."""
    file = tmp_path / "entity_names.tsv"
    file.write_text("id\tname\tkind\tgloss\nn1\tx\tanimal\ty\nn2\tu\tplant\tv\nnobody\ta\tb\tc\n", encoding="utf-8")
    found = read_columns(file, run.graph)
    assert list(found) == ["kind"]
    assert (found["kind"][1], found["kind"][2], found["kind"][3]) == ("animal", "plant", None)
    assert Collection([run], found).columns == found
    file.write_text("id\tname\nn1\tx\n", encoding="utf-8")
    with pytest.raises(DataError, match="neither name nor gloss"):
        read_columns(file, run.graph)


def test_the_type_is_what_most_are_instances_of(tmp_path: Path) -> None:
    from murp.graph import Vocabulary

    names = Vocabulary("entity", ["city", "river", "rome", "bonn", "rhine"])
    relations = Vocabulary("relation", ["http://x.org/#type", "near"])
    facts = np.array([(2, 0, 0), (3, 0, 0), (3, 0, 1), (4, 0, 1), (4, 0, 0), (2, 1, 4)], dtype=np.int32)
    graph = KnowledgeGraph("places", names, relations, facts, facts[:0], facts[:0])
    shown = Collection([made_run(tmp_path, graph)])
    assert "type" in column_names(shown)
    found = column(shown, 1, "type")
    assert found["is_category"]
    assert found["labels"] == ["city", "others"]  # three of three; city and river themselves have no type
    other = KnowledgeGraph("places", names, Vocabulary("relation", ["has", "near"]), facts, facts[:0], facts[:0])
    assert "type" not in column_names(Collection([made_run(tmp_path, other)]))


def test_communities_are_what_facts_join() -> None:
    """Two rings without a fact between them are no one community."""
    from murp.graph import Vocabulary

    ring = [(i, 0, (i + 1) % 5) for i in range(5)] + [(i, 0, (i + 2) % 5) for i in range(5)]
    facts = np.array(ring + [(h + 5, r, t + 5) for h, r, t in ring], dtype=np.int32)
    names = Vocabulary("entity", [f"e{i}" for i in range(10)])
    graph = KnowledgeGraph("rings", names, Vocabulary("relation", ["r"]), facts, facts[:0], facts[:0])
    found = communities(graph)
    assert set(found[:5]).isdisjoint(found[5:])
    assert len(set(found.tolist())) == 2
