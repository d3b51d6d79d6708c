"""Graphs out of what Python holds, and back."""

from __future__ import annotations

import sys
import warnings

import graphs
import numpy as np
import pyarrow as pa
import pytest

from murp.errors import DataError, MurpError, UnknownNameError
from murp.graph import SPLITS, KnowledgeGraph

FACTS = [(f"e{i % 7}", f"r{i % 2}", f"e{i * i % 5}") for i in range(60)]


def test_triples_are_split_so_that_everything_is_seen_in_training() -> None:
    graph = KnowledgeGraph.from_triples(FACTS, valid=0.1, test=0.2, seed=3)
    assert sorted(graph) == sorted(FACTS)
    assert len(graph) == 60
    assert all(len(graph.split(split)) for split in SPLITS)
    assert set(np.unique(graph.train[:, [0, 2]])) == set(range(graph.num_entities))
    assert graphs.same(graph, KnowledgeGraph.from_triples(iter(FACTS), valid=0.1, test=0.2, seed=3))
    assert len(KnowledgeGraph.from_triples(FACTS, valid=0, test=0).train) == 60
    own = KnowledgeGraph.from_triples(FACTS[:50], valid=FACTS[50:55], test=FACTS[55:], name="mine")
    assert list(own) == FACTS
    assert [len(own.split(split)) for split in SPLITS] == [50, 5, 5]
    numbers = KnowledgeGraph.from_triples(np.array([[1, 2, 3], [3, 2, 1]]))
    assert list(numbers) == [("1", "2", "3"), ("3", "2", "1")]


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ([("a", "r", "b"), ("a", "r")], r"graph, triple 2: not head, relation and tail"),
        ([("a", "r", "b"), "abc"], r"graph, triple 2: not head, relation and tail, but 'abc'"),
        ([("a", "r", "b"), ("a", None, "b")], r"graph, triple 2: the relation is empty"),
        ([("a", "r", 1.5)], r"graph, triple 1: the tail is '1.5'; ids are strings or whole numbers"),
        ([("a", "r", True)], r"triple 1: the tail is 'True'"),
        ([("a", "r", "\ud800")], r"triple 1: the tail is not valid Unicode"),
        ([("a", "r", "b"), ("a", " ", "b")], r"graph, triple 2: the relation is blank"),
        ([], r"holds no triples"),
    ],
)
def test_triples_that_are_none(triples: list[object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        KnowledgeGraph.from_triples(triples)  # type: ignore[arg-type]


def test_shares_that_are_none() -> None:
    for shares in ({"valid": 1.5}, {"valid": 0.5, "test": 0.5}, {"valid": -0.1}, {"valid": FACTS}):
        with pytest.raises(DataError, match="share"):
            KnowledgeGraph.from_triples(FACTS, **shares)  # type: ignore[arg-type]


def columns() -> dict[str, list[object]]:
    heads, relations, tails = map(list, zip(*FACTS, strict=True))
    return {"weight": [0.5] * 60, "target": tails, "type": relations, "source": heads, "tags": [["x"]] * 60}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_by_titles_by_name_by_position_and_back(library: str) -> None:
    frames = pytest.importorskip(library)
    frame = frames.DataFrame(columns())
    with pytest.warns(UserWarning, match="2 further columns left out: weight, tags"):
        graph = KnowledgeGraph.from_dataframe(frame, valid=0, test=0)
    assert list(graph) == FACTS
    for chosen in (["source", "type", "target"], [3, 2, 1], {"head": "source", "relation": 2, "tail": "target"}):
        with pytest.warns(UserWarning, match="further"):
            assert list(KnowledgeGraph.from_dataframe(frame, chosen, valid=0, test=0)) == FACTS
    back = graph.split(valid=0.1, test=0.1).to_dataframe(library)
    assert list(back.columns) == ["head", "relation", "tail", "split"]
    assert sorted(zip(back["head"], back["relation"], back["tail"], strict=True)) == sorted(FACTS)
    assert set(back["split"]) == set(SPLITS)
    train, valid, test = (frames.DataFrame({k: v[a:b] for k, v in columns().items() if k != "tags"}) for a, b in
                          ((0, 50), (50, 55), (55, 60)))  # fmt: skip
    with pytest.warns(UserWarning, match="further"):
        assert list(KnowledgeGraph.from_dataframe(train, valid=valid, test=test)) == FACTS


def test_frames_of_other_kinds_of_columns() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    categories = pandas.DataFrame({"h": ["a", "b"], "r": ["r", "r"], "t": ["b", "a"]}).astype("category")
    assert list(KnowledgeGraph.from_dataframe(categories)) == [("a", "r", "b"), ("b", "r", "a")]
    numbers = polars.DataFrame({"h": [1, 2], "r": [0, 0], "t": [2, 1]}, schema_overrides={"h": polars.UInt8})
    assert list(KnowledgeGraph.from_dataframe(numbers.lazy())) == [("1", "0", "2"), ("2", "0", "1")]
    enums = numbers.cast(polars.String).cast(polars.Categorical)
    assert list(KnowledgeGraph.from_dataframe(enums)) == [("1", "0", "2"), ("2", "0", "1")]
    untitled = pandas.DataFrame([("a", "r", "b")], index=["x"])
    assert list(KnowledgeGraph.from_dataframe(untitled)) == [("a", "r", "b")]
    holes = pandas.DataFrame({"head": [1, None], "relation": [1, 1], "tail": [2, 3]})
    with pytest.raises(DataError, match=r"column 'head' holds double; .* Fill in what is missing"):
        KnowledgeGraph.from_dataframe(holes)
    with pytest.raises(DataError, match=r"row 2: column 'head' is empty"):
        KnowledgeGraph.from_dataframe(
            pandas.DataFrame({"head": ["a", None], "relation": ["r", "r"], "tail": ["b", "c"]})
        )
    with pytest.raises(DataError, match=r"not understood: 'who', 'what', 'whom'"):
        KnowledgeGraph.from_dataframe(pandas.DataFrame([("a", "r", "b")], columns=["who", "what", "whom"]))
    with pytest.raises(DataError, match=r"list is not a data frame"):
        KnowledgeGraph.from_dataframe(FACTS)


def test_arrow_tables_and_what_gives_them() -> None:
    table = pa.table({"s": ["a"], "p": ["r"], "o": ["b"]})
    assert list(KnowledgeGraph.from_arrow(table)) == [("a", "r", "b")]
    assert list(KnowledgeGraph.from_arrow(table, ["o", "p", "s"])) == [("b", "r", "a")]
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        assert list(KnowledgeGraph.from_arrow(connection.sql("SELECT 1 AS h, 2 AS r, 3 AS t").to_arrow_table()))


def test_a_number_and_a_text_that_are_taken_as_one_are_told() -> None:
    with pytest.warns(UserWarning, match="1 name written as a number in one place and as a text in another.*: 1"):
        graph = KnowledgeGraph.from_triples([(1, "r", "b"), ("b", 7, "1"), ("b", "r", "7")], valid=0, test=0)
    assert list(graph) == [("1", "r", "b"), ("b", "7", "1"), ("b", "r", "7")]
    with warnings.catch_warnings(action="error"):
        KnowledgeGraph.from_triples([(1, "r", 2), ("01", "r", "b")], valid=0, test=0)


def test_networks() -> None:
    networkx = pytest.importorskip("networkx")
    network = networkx.DiGraph(name="friends")
    network.add_node(1, name="Ann")
    network.add_edge(1, "b", type="knows", since=1999)
    network.add_edge("b", 1, type="likes")
    with pytest.warns(UserWarning, match="1 further attribute of edges left out: since"):
        graph = KnowledgeGraph.from_networkx(network)
    assert (graph.name, list(graph)) == ("friends", [("1", "knows", "b"), ("b", "likes", "1")])
    assert graph.entities.name(0) == "Ann"
    keyed = networkx.MultiDiGraph([("a", "b", "knows"), ("a", "b", "likes")])
    assert list(KnowledgeGraph.from_networkx(keyed)) == [("a", "knows", "b"), ("a", "likes", "b")]
    with pytest.warns(UserWarning, match="edges without") as told:
        plain = KnowledgeGraph.from_networkx(networkx.path_graph(3))
    assert list(plain) == [("0", "edge", "1"), ("1", "edge", "2")]
    assert [str(one.message) for one in told] == [
        "graph: 2 edges without a relation, called 'edge'.",
        "graph: 2 edges without direction, stated one way.",
    ]
    network.add_edge("b", "c")
    with pytest.raises(DataError, match=r"edge 3: 'type' is empty"):
        KnowledgeGraph.from_networkx(network)
    with pytest.raises(DataError, match=r"no edge has the attribute 'kind'. There are type, since"):
        KnowledgeGraph.from_networkx(network, "kind")
    with pytest.raises(DataError, match=r"two nodes have the id '1' \(1 and '1'\)"):
        KnowledgeGraph.from_networkx(networkx.DiGraph([(1, 2), ("1", 2)]))
    with pytest.raises(DataError, match=r"edge 1: its source is"):
        KnowledgeGraph.from_networkx(networkx.grid_2d_graph(2, 2))


def test_rdf_as_text_as_a_file_and_from_another_library(tmp_path) -> None:
    pytest.importorskip("pyoxigraph")
    text = "@prefix a: <http://a.org/> .\na:1 a:r a:2 .\n"
    (tmp_path / "x.ttl").write_text(text)

    class OfAnotherLibrary:
        def serialize(self, format: str, encoding: str) -> bytes:
            assert (format, encoding) == ("nt", "utf-8")
            return b"<http://a.org/1> <http://a.org/r> <http://a.org/2> .\n"

    for source, form in (
        (text, "ttl"),
        (text.encode(), "ttl"),
        (tmp_path / "x.ttl", None),
        (str(tmp_path / "x.ttl"), None),
    ):
        assert list(KnowledgeGraph.from_rdf(source, form)) == [("a:1", "a:r", "a:2")]
    assert list(KnowledgeGraph.from_rdf(OfAnotherLibrary())) == [("http://a.org/1", "http://a.org/r", "http://a.org/2")]
    with pytest.raises(DataError, match=r"'xyz' is not an RDF format\. Known: nt, nq, ttl"):
        KnowledgeGraph.from_rdf(text, "xyz")
    with pytest.raises(DataError, match=r"graph, line 1, column 1: "):
        KnowledgeGraph.from_rdf("nonsense", "ttl")


def test_filter_keeps_what_is_asked_for_and_what_it_mentions() -> None:
    graph = KnowledgeGraph.from_triples(FACTS, seed=1)
    only = graph.filter(relations=["r1"])
    assert sorted(only) == sorted(fact for fact in FACTS if fact[1] == "r1")
    assert only.relations.ids.to_pylist() == ["r1"]
    some = {"e0", "e1", "e4"}
    assert sorted(graph.filter(entities=some)) == sorted(f for f in FACTS if {f[0], f[2]} <= some)
    assert sorted(graph.filter(lambda h, r, t: h == t)) == sorted(fact for fact in FACTS if fact[0] == fact[2])
    assert len(graph.filter(lambda h, r, t: False)) == 0
    with pytest.raises(UnknownNameError, match="unknown relation 'r9'"):
        graph.filter(relations=["r9"])
    named = KnowledgeGraph.load("wordnet-mini").filter(relations=["has_part"])
    assert named.entities.gloss(0)


def test_a_split_that_there_is_not_is_told() -> None:
    with pytest.raises(DataError, match=r"no split 'dev': choose train, valid or test"):
        KnowledgeGraph.from_triples([("a", "r", "b")], valid=0, test=0).split("dev")  # type: ignore[call-overload]


def test_shares_may_be_numbers_of_numpy() -> None:
    facts = [(f"a{i}", "r", f"a{j}") for i in range(6) for j in range(6)]
    share = np.float32(0.25)
    assert len(KnowledgeGraph.from_triples(facts, valid=share, test=share).valid) == 9


def test_split_divides_anew_and_still_gives_the_triples_of_one() -> None:
    graph = KnowledgeGraph.from_triples(FACTS)
    again = graph.split(valid=0.2, test=0.1, seed=5)
    assert sorted(again) == sorted(FACTS)
    assert len(again.valid) > len(graph.valid)
    assert np.array_equal(again.split("valid"), again.valid)


def test_a_graph_tells_what_it_is() -> None:
    graph = KnowledgeGraph.from_triples(FACTS[:1], name="toy")
    assert repr(graph) == "KnowledgeGraph('toy': 1 entity, 1 relation, 1 train, 0 valid, 0 test)"
    empty = graph.filter(lambda h, r, t: False)
    assert repr(empty) == "KnowledgeGraph('toy': 0 entities, 0 relations, 0 train, 0 valid, 0 test)"
    assert bool(empty)


def test_a_library_that_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = KnowledgeGraph.from_triples(FACTS)
    for library in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(
            MurpError, match=rf"needs {library}, which is not installed: pip install 'murp\[{library}\]'"
        ):
            graph.to_dataframe(library)  # type: ignore[arg-type]
