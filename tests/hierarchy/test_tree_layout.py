"""Sarkar's layout: no crossings, edges of one length, distances near those of the tree, and how deep float64 goes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from trees_and_dags import crossings, of_edges, of_parents, random_tree, ternary

from murp.errors import ConfigError, DataError
from murp.geometry import PoincareBall
from murp.hierarchy import Taxonomy, layout, reconstruct
from murp.hierarchy.sectors import TOP, _kept, _over_most, _tree, sectors
from murp.hierarchy.tree_layout import FARTHEST, by_levels, sector_angles


def distances(points: np.ndarray) -> np.ndarray:
    x = torch.from_numpy(points)
    return PoincareBall().distance(x[:, None], x[None]).numpy()


def tree_distances(parents: np.ndarray) -> np.ndarray:
    above = [[node] for node in range(len(parents))]
    for path in above:
        while parents[path[-1]] >= 0:
            path.append(int(parents[path[-1]]))
    found = np.zeros((len(parents), len(parents)))
    for i, one in enumerate(above):
        for j, other in enumerate(above):
            found[i, j] = len(set(one) ^ set(other))
    return found


@pytest.mark.parametrize("draw", [layout, lambda parents: sectors(of_parents(parents))], ids=["layout", "sectors"])
def test_a_ternary_tree_of_364_nodes_looks_like_a_tree(draw) -> None:
    parents = ternary()
    points = draw(parents)
    radius = np.linalg.norm(points, axis=1)
    leaves = np.arange(121, 364)
    assert len(points) == 364
    assert radius[0] == 0
    assert radius[leaves].min() > 0.98
    assert crossings(points, parents) == 0


@pytest.mark.parametrize("seed", range(6))
def test_no_edges_of_a_random_tree_cross(seed: int) -> None:
    parents = random_tree(60, seed)
    assert crossings(layout(parents), parents) == 0
    assert crossings(sectors(of_parents(parents)), parents) == 0


def test_edges_that_are_too_short_cross_and_the_count_sees_it() -> None:
    assert crossings(layout(ternary(), 0.5), ternary()) > 100


def test_every_edge_has_the_length_of_the_scale() -> None:
    parents = random_tree(50, 1)
    found = distances(layout(parents, 1.7))[np.arange(1, 50), parents[1:]]
    np.testing.assert_allclose(found, 1.7, rtol=1e-6)


def test_distances_come_near_those_of_the_tree_as_the_scale_grows() -> None:
    parents = ternary(3)
    expected = tree_distances(parents)
    pairs = expected > 0
    errors = []
    for scale in (2.0, 4.0, 8.0):
        ratio = distances(layout(parents, scale))[pairs] / (scale * expected[pairs])
        assert ratio.max() <= 1 + 1e-3  # a path in the tree is never shorter than the geodesic
        errors.append(1 - ratio.min())
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1
    # What two edges lose at their angle is a constant, so that it halves with twice the scale.
    assert errors[2] < 0.6 * errors[1]


def test_a_distance_is_right_to_a_thousandth_as_far_out_as_a_layout_goes() -> None:
    chain = np.array([-1, *range(10)])
    points = layout(chain, FARTHEST / 10)
    found = distances(points)[np.arange(1, 11), np.arange(10)]
    np.testing.assert_allclose(found, FARTHEST / 10, rtol=1e-3)
    with pytest.raises(ConfigError, match="choose a scale of 3 or less"):
        layout(chain, 3.1)


def test_what_is_no_tree_is_refused() -> None:
    with pytest.raises(DataError, match="2 nodes have no parent"):
        layout(np.array([-1, -1, 0]))
    with pytest.raises(DataError, match="2 nodes are their own ancestors"):
        layout(np.array([-1, 2, 1]))
    with pytest.raises(ConfigError, match="positive"):
        layout(np.array([-1, 0]), -1.0)


def test_sectors_of_a_forest_share_the_circle() -> None:
    edges = np.array([(1, 0), (2, 0), (4, 3), (5, 3)])
    points = sectors(of_edges(edges, 6))
    assert np.isfinite(points).all()
    assert (points[[1, 2]] @ points[0] > points[[1, 2]] @ points[3]).all()


def ranks(edges: list[tuple[int, int]], n: int) -> tuple[float, float]:
    """Mean rank and MAP of the sectors in five dimensions."""
    taxonomy = of_edges(np.array(edges), n)
    found = reconstruct(PoincareBall(), sectors(taxonomy, 5), taxonomy.closure())
    return found.mean_rank, found.map


def tree_with(extra: list[tuple[int, int]]) -> tuple[list[tuple[int, int]], int]:
    """The ternary tree of 364 nodes and more edges, whose nodes are counted on from 364."""
    edges = [(node, int(parent)) for node, parent in enumerate(ternary()) if parent >= 0]
    return edges + extra, max([364, *(1 + max(edge) for edge in extra)])


def kept_parents(taxonomy: Taxonomy) -> np.ndarray:
    sizes = np.bincount(taxonomy.closure()[:, 1], minlength=len(taxonomy)).astype(np.float64) + 1
    return _kept(taxonomy, sizes)


def test_of_several_parents_the_narrowest_is_kept() -> None:
    """A leaf under its own parent and under a child of the root: it stays where few others are."""
    parents = ternary()
    parents[363] = 2  # the wide one
    taxonomy = of_edges(np.array([*((node, int(parents[node])) for node in range(1, 364)), (363, 40)]), 364)
    kept = kept_parents(taxonomy)
    assert kept[363] == 40
    assert kept[0] == TOP


def test_a_node_stands_above_most_of_what_is_below_it() -> None:
    """364 is above the tree of node 4 and above one leaf of its own; 4 is kept by its parent 1."""
    edges, n = tree_with([(4, 364), (364, 3), (365, 364)])
    taxonomy = of_edges(np.array(edges), n)
    pairs = taxonomy.closure()
    kept = kept_parents(taxonomy)
    kept[4] = 1
    moved = _over_most(kept, pairs, taxonomy.order)
    assert (moved[4], moved[364], moved[365]) == (364, 1, 3)
    others = np.setdiff1d(np.arange(n), [4, 364, 365])
    assert (moved[others] == kept[others]).all()


def test_sectors_of_a_tree_with_some_second_parents_keep_nearly_all_ranks() -> None:
    edges, n = tree_with([])
    assert ranks(edges, n)[0] < 1.2
    second = [(leaf, 13 + (7 * leaf) % 27) for leaf in range(121, 364, 20)]
    mean_rank, precision = ranks(*tree_with(second))
    assert mean_rank < 3
    assert precision > 0.9


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40))
def test_every_node_of_a_dag_has_its_place_in_the_tree(seed: int, n: int) -> None:
    draw = np.random.default_rng(seed)
    parents = [[int(draw.integers(node)) for _ in range(int(draw.integers(4)))] for node in range(1, n - 1)]
    edges = [(node, parent) for node, some in enumerate(parents, 1) for parent in some]
    taxonomy = of_edges(np.array([*edges, (n - 1, 0)]), n)  # of several roots
    pairs = taxonomy.closure()
    moved = _over_most(kept_parents(taxonomy), pairs, taxonomy.order)
    _, order = _tree(moved)
    assert sorted(order) == list(range(n))
    points = sectors(taxonomy, 3)
    assert len(np.unique(points, axis=0)) == n
    assert np.linalg.norm(points, axis=1).max() < 1


@pytest.mark.parametrize("seed", range(3))
def test_by_levels_a_node_is_as_far_out_as_it_is_deep_and_has_a_sector_of_its_own(seed: int) -> None:
    parents = random_tree(60, seed)
    depth = tree_distances(parents)[0]
    points = by_levels(parents, 1.0)
    assert np.allclose(2 * np.arctanh(np.linalg.norm(points, axis=1)), depth)
    assert crossings(points, parents) == 0
    forest = np.where(parents == 0, -1, parents)  # without the node above all
    angles = sector_angles(forest)[1:]
    for level in np.unique(depth[1:]):
        assert len(np.unique(angles[depth[1:] == level])) == (depth == level).sum()
    with pytest.raises(DataError, match="2 nodes are their own ancestors"):
        by_levels(np.array([-1, 2, 1]), 1.0)
