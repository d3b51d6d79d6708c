from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import graphs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murp.errors import DataError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.graph.convert import convert
from murp.graph.indexing import index

FORMATS = [f"{form}{packing}" for form in ("tsv", "csv", "parquet") for packing in ("", ".gz", ".xz", ".zst")]


@settings(max_examples=40)  # each one waits for the disk
@given(train=graphs.plain_rows, valid=graphs.plain_rows, test=graphs.plain_rows, format=st.sampled_from(FORMATS))
def test_what_was_converted_loads_as_the_same_graph(train, valid, test, format):
    graph = index("toy", *(graphs.table(part) for part in (train, valid, test)))
    with tempfile.TemporaryDirectory() as folder:
        convert(graph, Path(folder) / "out", format)
        assert sorted(p.name for p in (Path(folder) / "out").iterdir()) == sorted(
            f"{split}.{format}" for split in ("train", "valid", "test")
        )
        assert graphs.same(KnowledgeGraph.load(Path(folder) / "out"), graph)


def test_names_go_along(tmp_path):
    rows = graphs.table([("a", "r", "b"), ("c", "r", "d")])
    graph = replace(
        index("toy", rows, rows, rows),
        entities=Vocabulary(
            "entity", ["a", "c", "b", "d"], ["A", None, 'the "B"', None], ["first", "third", None, None]
        ),
        relations=Vocabulary("relation", ["r"], ["are"]),
    )
    convert(graph, tmp_path / "out", "csv")
    assert (tmp_path / "out" / "entity_names.tsv").read_text() == 'a\tA\tfirst\nc\t\tthird\nb\tthe "B"\t\n'
    assert graphs.same(KnowledgeGraph.load(tmp_path / "out"), graph)


@pytest.mark.parametrize(
    ("row", "format", "message"),
    [
        (("a\tb", "r", "c"), "tsv", r"train\.tsv: 'a\\tb' holds a tab or a line end"),
        (("a", "r\ns", "c"), "tsv.gz", r"'r\\ns' holds a tab"),
        (("s", "p", "o"), "tsv", "first row looks like a header"),
        (("a", "r", "b"), "xml", "unknown format 'xml'. Known: tsv, csv and parquet"),
        (("a", "r", "b"), "tsv.rar", "unknown format"),
    ],
)
def test_what_cannot_be_written_is_refused_and_leaves_nothing(tmp_path, row, format, message):
    rows = graphs.table([row])
    with pytest.raises(DataError, match=message):
        convert(index("toy", rows, rows, rows), tmp_path / "out", format)
    assert list(tmp_path.iterdir()) == []


def test_tabs_and_headers_are_fine_where_the_format_has_room_for_them(tmp_path):
    rows = graphs.table([("s", "p", "o"), ("a\tb\n", "r", "c")])
    graph = index("toy", rows, rows, rows)
    for format in ("csv", "parquet"):
        convert(graph, tmp_path / format, format)
        assert graphs.same(KnowledgeGraph.load(tmp_path / format), graph)


def test_a_folder_that_exists_is_refused(tmp_path):
    rows = graphs.table([("a", "r", "b")])
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match="exists already"):
        convert(index("toy", rows, rows, rows), tmp_path, "tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("format", ["tsv", "csv", "parquet"])
def test_a_graph_without_valid_and_test_loads_again(tmp_path, format):
    graph = KnowledgeGraph.from_triples([("a", "r", "b"), ("a", "r", "c")])
    assert len(graph.train) == 2
    convert(graph, tmp_path / "out", format)
    assert graphs.same(KnowledgeGraph.load(tmp_path / "out"), graph)
