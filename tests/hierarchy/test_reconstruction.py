"""Mean rank and MAP against the authors' way of computing them, by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from murp.errors import ConfigError
from murp.geometry import Euclidean, Hyperboloid, PoincareBall, hyperboloid
from murp.hierarchy import reconstruct

N = 700  # more than a tile


def case(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    points = draw.normal(size=(N, 3))
    points *= (np.tanh(draw.uniform(0, 6, size=N)) / np.linalg.norm(points, axis=1))[:, None]
    pairs = np.unique(draw.integers(0, N, (2500, 2)), axis=0)
    return points, pairs[pairs[:, 0] != pairs[:, 1]]


def brute_force(distances: np.ndarray, pairs: np.ndarray) -> tuple[float, float]:
    """A sort of all nodes by distance, the node itself last; precision at each ancestor's place."""
    ranks, precisions = [], []
    for node in np.unique(pairs[:, 0]):
        ancestors = pairs[pairs[:, 0] == node, 1]
        far = distances[node].copy()
        far[node] = np.inf
        places = np.flatnonzero(np.isin(np.argsort(far), ancestors)) + 1
        number = np.arange(1, len(places) + 1)
        ranks.extend(places - number + 1)
        precisions.append(float((number / places).mean()))
    return float(np.mean(ranks)), float(np.mean(precisions))


def test_both_figures_are_those_of_brute_force_in_either_model_of_the_space() -> None:
    points, pairs = case()
    x = torch.from_numpy(points)
    mean_rank, precision = brute_force(PoincareBall().distance(x[:, None], x[None]).numpy(), pairs)
    on_ball = reconstruct(PoincareBall(), points, pairs[::-1])
    on_hyperboloid = reconstruct(Hyperboloid(), hyperboloid.from_ball(x, c=1.0).numpy(), pairs)
    for found in (on_ball, on_hyperboloid):
        assert found.mean_rank == pytest.approx(mean_rank, rel=1e-12)
        assert found.map == pytest.approx(precision, rel=1e-12)
        assert (found.pairs, found.nodes) == (len(pairs), len(np.unique(pairs[:, 0])))


def test_nodes_at_the_same_distance_count_half() -> None:
    points = np.array([[0.0, 0.0], [0.5, 0.0], [0.5, 0.0], [-0.5, 0.0], [0.9, 0.0]])
    found = reconstruct(PoincareBall(), points, np.array([(0, 1)]))
    assert found.mean_rank == 2.0  # two others are as far
    assert found.map == 0.5


def test_what_cannot_be_reconstructed_is_refused() -> None:
    with pytest.raises(ConfigError, match="no pair"):
        reconstruct(PoincareBall(), np.zeros((2, 2)), np.zeros((0, 2), int))
    with pytest.raises(ConfigError, match="euclidean"):
        reconstruct(Euclidean(), np.zeros((2, 2)), np.array([(0, 1)]))
