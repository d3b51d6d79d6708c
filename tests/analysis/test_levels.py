from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import digraphs
import networkx
import numpy as np
from digraphs import edge_lists, edges
from hypothesis import given
from hypothesis import strategies as st

from murp.analysis import Directed, find_levels, shortest_path


@given(edge_lists)
def test_levels_are_distances_from_the_roots_of_the_condensation(listed):
    """By networkx, for whichever end the function took for the top."""
    found = find_levels(edges(listed))
    judge = networkx.DiGraph(listed)
    tree = networkx.condensation(judge)
    beginnings, ends = (
        [c for c in tree if not degree(c)] for degree in (lambda c: tree.in_degree(c), lambda c: tree.out_degree(c))
    )
    assert found.direction == ("up" if len(ends) < len(beginnings) else "down")
    if found.direction == "up":
        tree, beginnings, ends = tree.reverse(), ends, beginnings
    assert (found.roots, found.leaves) == (len(beginnings), len(ends))
    expected = networkx.multi_source_dijkstra_path_length(tree, set(beginnings)) if beginnings else {}
    of = tree.graph["mapping"]
    assert dict(zip(found.nodes.tolist(), found.depth.tolist(), strict=True)) == {x: expected[of[x]] for x in judge}


def test_a_tree_has_the_same_levels_whichever_way_its_edges_point():
    down = edges([((child - 1) // 2, child) for child in range(1, 63)])
    for listed, direction in ((down, "down"), (down[:, ::-1], "up")):
        found = find_levels(listed)
        assert (found.direction, found.roots, found.leaves) == (direction, 1, 32)
        assert found.depth.tolist() == [int(np.log2(node + 1)) for node in range(63)]


def test_a_cycle_at_the_top_is_one_root():
    found = find_levels(edges([(0, 1), (1, 0), (1, 2), (2, 3), (2, 4)]))
    assert found.depth.tolist() == [0, 0, 1, 2, 2]
    assert (found.roots, found.leaves) == (1, 2)


@given(edge_lists, st.integers(0, 11), st.integers(0, 11))
def test_a_shortest_path_is_one(listed, source, target):
    path = shortest_path(edges(listed), source, target)
    nodes = np.unique(edges(listed)).tolist()
    if source not in nodes or target not in nodes:
        assert path is None
        return
    steps = digraphs.distances(edges(listed))[nodes.index(source), nodes.index(target)]
    if path is None:
        assert steps < 0
        return
    assert (path[0], path[-1], len(path)) == (source, target, steps + 1)
    assert set(pairwise(path)) <= set(listed)


@given(edge_lists, st.sets(st.integers(0, 11)))
def test_distances_are_from_the_nearest_source(listed, chosen):
    graph = Directed.of(edges(listed))
    sources = np.flatnonzero(np.isin(graph.nodes, list(chosen)))
    judge = networkx.DiGraph(listed)
    nearest = networkx.multi_source_dijkstra_path_length(judge, set(graph.nodes[sources])) if len(sources) else {}
    assert graph.distances(sources).tolist() == [nearest.get(node, -1) for node in graph.nodes.tolist()]


def test_a_long_chain_has_as_many_levels_as_nodes():
    chain = np.arange(5_000)
    assert find_levels(np.stack([chain[:-1], chain[1:]], axis=1)).depth.tolist() == chain.tolist()


def test_levels_wait_for_no_compiler():
    code = (
        "import sys, numpy, murp.analysis as a; a.find_levels(numpy.array([[0, 1]])); sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
