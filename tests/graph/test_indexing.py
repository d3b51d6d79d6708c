from __future__ import annotations

import graphs
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from murp.graph import KnowledgeGraph
from murp.graph.indexing import index, table_of


@given(
    rows=st.lists(st.tuples(*[graphs.few_names.map(str.strip)] * 3), max_size=40),
    cuts=st.lists(st.integers(0, 40), min_size=2, max_size=2).map(sorted),
    chunk=st.integers(1, 7),
)
def test_numbers_follow_first_appearance_and_lead_back_to_the_names(rows, cuts, chunk):
    parts = [rows[: cuts[0]], rows[cuts[0] : cuts[1]], rows[cuts[1] :]]
    tables = [
        pa.concat_tables([graphs.table(part[i : i + chunk]) for i in range(0, max(len(part), 1), chunk)])
        for part in parts
    ]
    graph = index("toy", *tables)
    entities = dict.fromkeys(name for part in parts for column in (0, 2) for name in (r[column] for r in part))
    assert graph.entities.ids.to_pylist() == list(entities)
    assert graph.relations.ids.to_pylist() == list(dict.fromkeys(row[1] for row in rows))
    for part, split in zip(parts, ("train", "valid", "test"), strict=True):
        triples = graph.split(split)
        assert triples.dtype == np.int32
        assert triples.shape == (len(part), 3)
        assert triples.flags.c_contiguous
        assert graphs.listed(table_of(graph, triples)) == part


def test_names_are_joined_by_id_first_row_first():
    names = pa.table(
        {"id": ["b", "x", "b", "a"], "name": ["Bee", "Ex", "Bee again", None], "gloss": ["1", "2", "3", "4"]}
    )
    nothing = graphs.table([])
    graph = KnowledgeGraph.from_tables(
        "toy",
        graphs.table([("a", "r", "b"), ("a", "r", "c")]),
        nothing,
        nothing,
        entity_names=names.cast(pa.schema([(c, pa.large_string()) for c in names.column_names])),
    )
    assert [graph.entities.label(i) for i in range(3)] == ["a", "Bee [b]", "c"]
    assert [graph.entities.gloss(i) for i in range(3)] == ["4", "1", None]
    assert graph.relations.label(0) == "r"


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=20))
def test_reciprocals_are_the_same_facts_read_backwards(facts):
    triples = graphs.coded(facts)
    nothing = graphs.coded([])
    names = graphs.table([(str(i), str(j), str(i)) for i in range(6) for j in range(3)])
    graph = index("toy", names, names.slice(0, 0), names.slice(0, 0))
    both = graph.with_reciprocals(triples)
    assert both.dtype == np.int32
    assert both.tolist() == [*map(list, facts), *([o, r + 3, s] for s, r, o in facts)]
    assert graph.with_reciprocals(nothing).shape == (0, 3)
