from __future__ import annotations

from itertools import combinations

import digraphs
import networkx
import numpy as np
import pytest
from digraphs import edge_lists, edges
from hypothesis import given

from murp.analysis import hyperbolicity
from murp.analysis.hyperbolicity import _draw


def judged(listed) -> list[tuple[float, float, int]] | None:
    """Mean δ, largest δ and diameter of each largest connected part; None where that has fewer than four nodes."""
    graph = networkx.Graph(listed)
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    sizes = {len(part) for part in networkx.connected_components(graph)}
    if max(sizes, default=0) < 4:
        return None
    parts = [part for part in networkx.connected_components(graph) if len(part) == max(sizes)]
    found = []
    for part in parts:
        d = dict(networkx.all_pairs_shortest_path_length(graph.subgraph(part)))
        deltas = []
        for x, y, z, w in combinations(part, 4):
            sums = sorted([d[x][y] + d[z][w], d[x][z] + d[y][w], d[x][w] + d[y][z]])
            deltas.append((sums[2] - sums[1]) / 2)
        found.append((float(np.mean(deltas)), max(deltas), max(max(row.values()) for row in d.values())))
    return found


@given(edge_lists)
def test_small_graphs_are_measured_whole_and_agree_with_the_definition(listed):
    found, expected = hyperbolicity(edges(listed)), judged(listed)
    if expected is None:
        assert found is None
        return
    assert found.exhaustive
    # Of several parts of the same size any may be the one.
    assert any((found.mean, found.largest, found.diameter) == pytest.approx(part) for part in expected)
    assert found.relative == 2 * found.largest / found.diameter


@pytest.mark.parametrize("length", range(4, 21))
def test_cycles_have_the_known_values(length):
    """δ of a cycle of 4p + e nodes is p, and p - 1/2 where e = 1."""
    cycle = edges([(i, (i + 1) % length) for i in range(length)])
    quarter, rest = divmod(length, 4)
    assert hyperbolicity(cycle).largest == (quarter - 0.5 if rest == 1 else quarter)


def test_trees_and_cliques_have_none():
    tree = edges([(child, (child - 1) // 3) for child in range(1, 600)])
    found = hyperbolicity(tree)
    assert not found.exhaustive
    assert (found.entities, found.sampled, found.quadruples) == (600, 200, 100_000)
    assert (found.mean, found.largest, found.relative) == (0, 0, 0)
    clique = edges(list(combinations(range(6), 2)))
    assert hyperbolicity(clique).largest == 0


def test_the_diameter_of_a_sample_is_a_lower_bound_and_exact_for_trees():
    """The farthest node from any in a tree is an end of a longest path."""
    for seed in range(20):
        listed = digraphs.random_edges(seed, 80, 100)
        graph = networkx.Graph(listed.tolist())
        part = graph.subgraph(max(networkx.connected_components(graph), key=len))
        ends = dict(networkx.eccentricity(part))
        found = hyperbolicity(listed, entities=4, seed=seed)
        assert (found.entities, found.sampled) == (len(part), 4)
        assert min(ends.values()) < found.diameter <= max(ends.values())
        tree = networkx.random_labeled_tree(70, seed=seed)
        assert hyperbolicity(edges(list(tree.edges)), entities=4, seed=seed).diameter == networkx.diameter(tree)


def test_a_sample_comes_close_and_repeats():
    listed = digraphs.random_edges(3, 60, 90)
    whole = hyperbolicity(listed, entities=60, quadruples=10**6)
    assert whole.exhaustive
    sample = hyperbolicity(listed, entities=60, quadruples=20_000, seed=1)
    assert not sample.exhaustive
    assert sample.quadruples == 20_000
    # Five standard errors of a mean of 20,000 values between 0 and the largest.
    assert abs(sample.mean - whole.mean) < 5 * whole.largest / 2 / np.sqrt(20_000)
    assert sample.largest <= whole.largest
    assert sample == hyperbolicity(listed, entities=60, quadruples=20_000, seed=1)
    assert sample != hyperbolicity(listed, entities=60, quadruples=20_000, seed=2)


def test_quadruples_are_of_four_different_entities():
    drawn = _draw(np.random.default_rng(0), 5, 20_000)
    assert all(len(set(row)) == 4 for row in drawn.tolist())
    # All 120 ordered choices of four from five, none far from its share.
    _, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(counts) == 120
    assert abs(counts - 20_000 / 120).max() < 6 * np.sqrt(20_000 / 120)
