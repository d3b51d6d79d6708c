from __future__ import annotations

import contextlib
import json
import tempfile
from dataclasses import replace
from pathlib import Path

import graphs
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murp.errors import DataError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.graph.indexing import index

FILES = ["graph.json", *(f"{n}.parquet" for n in ("entities", "relations", "train", "valid", "test"))]


def graph() -> KnowledgeGraph:
    rows = [("a", "r", "b"), ("b", "q", "c"), ("a", "r", "b")]
    coded = index("toy ß", graphs.table(rows), graphs.table(rows[:1]), graphs.table([]))
    return replace(coded, entities=Vocabulary("entity", ["a", "b", "c"], ["A", None, "C"], [None, "g", None]))


@settings(max_examples=20)  # each one waits for the disk
@given(train=graphs.rows, valid=graphs.rows, test=graphs.rows)
def test_what_is_read_back_is_what_was_saved(train, valid, test):
    saved = index("any name", *(graphs.table(part) for part in (train, valid, test)))
    with tempfile.TemporaryDirectory() as folder:
        saved.save(Path(folder) / "graph")
        read = KnowledgeGraph.load(Path(folder) / "graph")
    assert graphs.same(read, saved)
    assert read.name == saved.name


def test_names_glosses_and_empty_splits_are_kept(tmp_path):
    graph().save(tmp_path / "new" / "graph")
    read = KnowledgeGraph.load(tmp_path / "new" / "graph")
    assert graphs.same(read, graph())
    assert read.test.shape == (0, 3)
    assert sorted(p.name for p in (tmp_path / "new").iterdir()) == ["graph"]
    assert sorted(p.name for p in (tmp_path / "new" / "graph").iterdir()) == sorted(FILES)


@settings(max_examples=50)
@given(data=st.data(), file=st.sampled_from(FILES), kind=st.sampled_from(["flip", "cut", "remove", "empty"]))
def test_damage_is_found_or_harmless(data, file, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph" / file
        graph().save(path.parent)
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes({"flip": content, "cut": content[:place], "empty": b""}.get(kind, b""))
        if kind == "remove":
            path.unlink()
        if file == "graph.json" and kind == "flip":  # white space or the name may change and do no harm
            with contextlib.suppress(DataError):
                assert graphs.same(KnowledgeGraph.load(path.parent), graph())
        else:
            with pytest.raises(DataError):
                KnowledgeGraph.load(path.parent)


def test_another_version_and_another_format_are_named(tmp_path):
    graph().save(tmp_path / "graph")
    path = tmp_path / "graph" / "graph.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"version": 3}))
    with pytest.raises(DataError, match="format version 3; this program reads 1"):
        KnowledgeGraph.load(path.parent)
    path.write_text(json.dumps(manifest | {"format": "other"}))
    with pytest.raises(DataError, match="the format is 'other'"):
        KnowledgeGraph.load(path.parent)


def test_a_folder_that_exists_is_refused_and_untouched(tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(DataError, match="mine exists already"):
        graph().save(tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def full(table, path, **options):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(DataError, match="No space left on device"):
        graph().save(tmp_path / "graph")
    assert list(tmp_path.iterdir()) == []
