"""Caps: where their points lie, and that nodes with several parents are near all of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from trees_and_dags import of_edges, of_parents, random_tree, ternary

from murp.geometry import PoincareBall
from murp.hierarchy import Taxonomy, embed, reconstruct, reconstruction
from murp.hierarchy.sectors import sectors
from murp.hierarchy.spherical_caps import FEWEST, LEAST, caps
from murp.training.progress import Silent


def angle(a: np.ndarray, b: np.ndarray) -> float:
    return math.acos(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.mark.parametrize("dim", [5, 9, 16])
def test_the_points_of_a_tree_are_where_the_formula_puts_them(dim: int) -> None:
    parents, n = random_tree(60, dim), 60
    points = caps(of_parents(parents), dim)
    below = np.ones(n)
    for node in range(n - 1, 0, -1):
        below[parents[node]] += below[node]
    half = math.pi / 2 * (below / n) ** (1 / math.sqrt(dim))
    assert not points[0].any()
    for node in range(1, n):
        assert np.linalg.norm(points[node]) == pytest.approx(math.cos(half[node]))
        above = parents[node]
        if above:
            expected = max(math.sqrt(half[above] ** 2 - half[node] ** 2), LEAST * half[above])
            assert angle(points[node], points[above]) == pytest.approx(expected)


def dag_with_second_parents() -> Taxonomy:
    """The ternary tree of 364 nodes, of whose leaves every third has a second parent anywhere."""
    draw = np.random.default_rng(0)
    first = [(node, int(parent)) for node, parent in enumerate(ternary()) if parent >= 0]
    second = [(leaf, int(draw.integers(1, 121))) for leaf in range(121, 364, 3)]
    return of_edges(np.array(first + second), 364)


def test_second_parents_are_nearer_than_in_sectors() -> None:
    taxonomy = dag_with_second_parents()
    wide, narrow = (reconstruct(PoincareBall(), start(taxonomy, 10), taxonomy.closure()) for start in (caps, sectors))
    assert wide.mean_rank < 0.8 * narrow.mean_rank


def test_training_with_rank_starts_in_caps_and_has_half_the_mean_rank_of_softmax(tmp_path: Path) -> None:
    taxonomy, found = dag_with_second_parents(), []
    for objective in ("softmax", "rank"):
        settings = {"dim": 20, "epochs": 20, "lr": 0.1, "objective": objective, "progress": Silent()}
        found.append(reconstruction(embed(taxonomy, out=tmp_path / objective, **settings)))
    softmax, rank = found
    assert rank.mean_rank < 0.6 * softmax.mean_rank
    assert rank.map > softmax.map


def test_rank_starts_in_sectors_where_dimensions_are_few(tmp_path: Path) -> None:
    settings = {"dim": 2, "epochs": 1, "lr": 1e-9, "objective": "rank", "progress": Silent()}
    run = embed(of_parents(ternary()), out=tmp_path / "run", **settings)
    assert reconstruction(run).mean_rank < 1.5


@given(seed=st.integers(0, 10**6), n=st.integers(2, 40), dim=st.integers(FEWEST, 12))
def test_every_node_of_a_dag_has_a_point_of_its_own(seed: int, n: int, dim: int) -> None:
    draw = np.random.default_rng(seed)
    parents = [[int(draw.integers(node)) for _ in range(int(draw.integers(4)))] for node in range(1, n - 1)]
    edges = [(node, parent) for node, some in enumerate(parents, 1) for parent in some]
    taxonomy = of_edges(np.array([*edges, (n - 1, 0)]), n)  # of several roots
    points = caps(taxonomy, dim, seed)
    assert len(np.unique(points, axis=0)) == n
    assert np.linalg.norm(points, axis=1).max() < 1
    assert (caps(taxonomy, dim, seed) == points).all()
