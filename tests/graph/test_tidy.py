"""The one rule for names: the same graph from every format, and what was changed is counted."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import graphs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.errors import DataError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.graph.auditing.audit import audit_source
from murp.graph.names import tidy as tidying
from murp.graph.names.tidy import tidy, tidy_array

CAFE, CAFE_APART = "caf\u00e9", "cafe\u0301"
MESSY = [
    ("Paris ", "in", " France"),
    ("Paris", "in ", "France"),
    (CAFE, "in", "\u00a0Paris\u3000"),
    (CAFE_APART, "near", "paris"),
    ("\ufeff007", "near", "7"),
    ("7.0", "near", '"Paris"'),
    ("a b", "in", "France"),
]


def write(path: Path) -> None:
    if path.suffix == ".tsv":
        path.write_text("".join("\t".join(row) + "\n" for row in MESSY), encoding="utf-8")
    elif path.suffix == ".csv":
        lines = [",".join('"' + field.replace('"', '""') + '"' for field in row) for row in MESSY]
        path.write_text("head,relation,tail\n" + "\n".join(lines), encoding="utf-8")
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in MESSY), encoding="utf-8")
    else:
        pq.write_table(graphs.table(MESSY), path)


@pytest.mark.parametrize("form", ["tsv", "csv", "jsonl", "parquet"])
def test_messy_names_are_the_same_graph_in_every_format(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"messy.{form}"
    write(path)
    with pytest.warns(UserWarning, match="taken off") as told:
        graph = KnowledgeGraph.load(path)
    ids = ["Paris", CAFE, "007", "7.0", "a b", "France", "paris", "7", '"Paris"']
    assert graph.entities.ids.to_pylist() == ids
    assert graph.relations.ids.to_pylist() == ["in", "near"]
    assert sorted(map(tuple, graph.facts().tolist())) == sorted(
        [(0, 0, 5), (0, 0, 5), (1, 0, 0), (1, 1, 6), (2, 1, 7), (3, 1, 8), (4, 0, 5)]
    )
    messages = [str(one.message) for one in told]
    for words in (
        "4 names of entities with blanks at the ends, which were taken off; 3 of the 13 entities were other spellings",
        "1 name of relations with blanks at the ends",
        "1 name of entities in another Unicode form than NFC, brought to it; 1 of the 13 entities was another spelling",
        rf"'cafe\u0301' → '{CAFE}'",
    ):
        assert any(words in message for message in messages)


def test_the_audit_counts_what_was_changed_and_what_may_be_one_thing(tmp_path: Path) -> None:
    path = tmp_path / "messy.tsv"
    write(path)
    path.write_text("# made by hand\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    found = audit_source(path)
    for check, where, count in (
        ("blanks_round_names", "entities", 4),
        ("blanks_round_names", "relations", 1),
        ("other_unicode_forms", "entities", 1),
        ("comment_lines", "messy.tsv", 1),
        ("case_twins", "entities", 1),
        ("number_twins", "entities", 2),
        ("quoted_names", "entities", 1),
        ("case_twins", "relations", 0),
    ):
        assert found.count(check, where) == count, check
    text = "\n".join(found.lines())
    assert "'Paris ' → 'Paris'" in text
    assert "Paris ~ paris" in text
    assert "007 ~ 7.0 ~ 7" in text
    assert "# made by hand" in text


def test_what_the_audit_counts_survives_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MURP_CACHE", raising=False)
    monkeypatch.setattr("murp.graph.cache.LEAST_BYTES", 0)
    write(tmp_path / "messy.tsv")
    first = audit_source(tmp_path / "messy.tsv")
    assert list((tmp_path / "cache" / "murp" / "parsed").iterdir())
    assert audit_source(tmp_path / "messy.tsv") == first


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("a\tr\tb\nc\t  \td\n", "facts.tsv", r"facts\.tsv, line 2: the relation is blank\. Fill it in"),
        ('head,relation,tail\na,r,b\n"\u00a0",r,b\n', "facts.csv", r"facts\.csv, line 3: the head is blank"),
        ('["a","r","b"]\n\n["a","r"," "]\n', "facts.jsonl", r"facts\.jsonl, line 3: the tail is blank"),
    ],
)
def test_a_name_of_blanks_is_refused_at_its_line(tmp_path: Path, content: str, name: str, message: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.load(tmp_path / name)


def test_a_blank_name_in_parquet_is_refused_at_its_row(tmp_path: Path) -> None:
    pq.write_table(graphs.table([("a", "r", "b"), (" ", "r", "b")]), tmp_path / "facts.parquet")
    with pytest.raises(DataError, match=r"facts\.parquet, row 2: the head is blank"):
        KnowledgeGraph.load(tmp_path / "facts.parquet")


def test_comments_are_passed_over_and_rows_that_begin_with_a_hash_are_not(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("# a comment\n# another, with\ttab\n# head\trelation\ttail\n#a\tr\tb\n\n  # so\nc\tr\td\n")
    with pytest.warns(UserWarning, match=r"3 comment lines \(#\) passed over"):
        graph = KnowledgeGraph.load(path)
    assert graph.entities.ids.to_pylist() == ["#a", "c", "b", "d"]


def test_names_beside_the_data_follow_the_rule(tmp_path: Path) -> None:
    folder = graphs.write_dataset(tmp_path / "mine", train="a r b; b r a", valid="a r b", test="a r b")
    (folder / "entity_names.tsv").write_text(f"# ids and names\na \t {CAFE_APART} \nb\t\n", encoding="utf-8")
    assert KnowledgeGraph.load(folder).entities.label(0) == f"{CAFE} [a]"


def test_what_is_typed_follows_the_rule() -> None:
    vocabulary = Vocabulary("entity", ["Paris", CAFE, " old "])
    assert [vocabulary.find(text) for text in (" Paris", CAFE_APART, " old ")] == [0, 1, 2]


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), max_size=20), st.integers(1, 30))
def test_the_rule_for_many_is_the_rule_for_one_and_changes_nothing_twice(names: list[str], at_once: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tidying, "AT_ONCE", at_once)
        tidied = tidy_array(pa.array(names, pa.large_string())).to_pylist()
    assert tidied == [tidy(name) for name in names]
    assert [tidy(name) for name in tidied] == tidied
    assert all(unicodedata.is_normalized("NFC", name) for name in tidied)
