"""A taxonomy of a graph: its closure by brute force, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees_and_dags import of_edges

from murp.errors import ConfigError, DataError, UnknownNameError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.hierarchy import Taxonomy

Edges = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 11)), min_size=1, max_size=25)


def graph(facts: list[tuple[int, int, int]], relations: tuple[str, ...] = ("kind", "part")) -> KnowledgeGraph:
    rows = np.array(facts, dtype=np.int32).reshape(-1, 3)
    n = int(rows[:, [0, 2]].max()) + 1
    names = Vocabulary("entity", [f"e{i}" for i in range(n)], [f"thing {i}" for i in range(n)])
    half = len(rows) // 2
    return KnowledgeGraph("made", names, Vocabulary("relation", list(relations)), rows[half:], rows[:half], rows[:0])


@given(Edges)
def test_the_closure_is_that_of_brute_force(pairs: list[tuple[int, int]]) -> None:
    edges = np.array([(a, b) for a, b in pairs if b < a] or [(1, 0)])
    taxonomy = of_edges(edges, 13)
    reach = np.zeros((13, 13), bool)
    reach[edges[:, 0], edges[:, 1]] = True
    for middle in range(13):
        reach |= reach[:, [middle]] & reach[[middle]]
    assert taxonomy.closure().tolist() == np.argwhere(reach).tolist()
    place = {node: i for i, node in enumerate(taxonomy.order)}
    assert all(place[above] < place[below] for below, above in edges.tolist())


def test_relations_of_a_graph_make_a_taxonomy_from_either_side() -> None:
    whole = graph([(1, 0, 0), (2, 0, 1), (2, 0, 2), (3, 1, 4), (0, 1, 3)])
    kinds = Taxonomy.of(whole, ["kind"])
    assert [kinds.nodes.label(i) for i in range(len(kinds))] == ["thing 0 [e0]", "thing 1 [e1]", "thing 2 [e2]"]
    assert kinds.edges.tolist() == [[1, 0], [2, 1]]  # a node above itself is none
    parts = Taxonomy.of(whole, ["part"], above="head")
    assert [(parts.nodes.id(a), parts.nodes.id(b)) for a, b in parts.edges.tolist()] == [("e3", "e0"), ("e4", "e3")]
    both = Taxonomy.of(whole, ["kind", "part"])
    assert len(both.edges) == 4


def test_the_graph_to_train_on_tells_parents_from_the_others() -> None:
    taxonomy = of_edges(np.array([(1, 0), (2, 1), (2, 0)]), 3)
    assert taxonomy.graph("x").train.tolist() == [[1, 0, 0], [2, 0, 0], [2, 0, 1]]
    chain = of_edges(np.array([(1, 0), (2, 1)]), 3).graph("x")
    assert chain.train.tolist() == [[1, 0, 0], [2, 0, 1], [2, 1, 0]]
    assert chain.relations.id(1) == "above (further up)"


def test_a_cycle_is_named() -> None:
    with pytest.raises(DataError, match=r"has a cycle.*n(\d) → n\d → n\d → n\1\. Remove one"):
        of_edges(np.array([(1, 0), (2, 1), (3, 2), (4, 3), (2, 4)]), 5).closure()


def test_several_roots_have_a_closure_and_no_tree() -> None:
    forest = of_edges(np.array([(1, 0), (3, 2)]), 4)
    assert forest.closure().tolist() == [[1, 0], [3, 2]]
    with pytest.raises(DataError, match=r"2 roots.*n0, n2"):
        forest.tree()


def test_of_several_parents_the_highest_is_in_the_tree() -> None:
    assert of_edges(np.array([(1, 0), (2, 1), (3, 2), (3, 0)]), 4).tree().tolist() == [-1, 0, 1, 0]


def test_no_hierarchy_is_refused() -> None:
    with pytest.raises(DataError, match="no fact of part between two different nodes"):
        Taxonomy.of(graph([(1, 0, 0), (1, 1, 1)]), ["part"])
    with pytest.raises(ConfigError, match=r"2 relations: choose those.*kind, part"):
        Taxonomy.of(graph([(1, 0, 0)]))
    with pytest.raises(UnknownNameError, match="kinds"):
        Taxonomy.of(graph([(1, 0, 0)]), ["kinds"])
    with pytest.raises(ConfigError, match="head or tail"):
        Taxonomy.of(graph([(1, 0, 0)]), ["kind"], above="left")
