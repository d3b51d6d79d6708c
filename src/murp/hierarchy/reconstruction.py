"""How well points reconstruct a hierarchy: mean rank and mean average precision (MAP).

For a node u with ancestors A(u), the rank of an ancestor v is 1 + the number of nodes outside A(u) ∪ {u} that are
nearer to u than v; nodes at the same distance count half.

    mean rank   the mean of the ranks over all pairs (u, v),
    MAP         the mean over nodes u that have ancestors of the mean over i of i / (rank_i + i - 1), where rank_1 ≤
                rank_2 ≤ … are the ranks of its ancestors: the precision among the nearest nodes up to the i-th.

This is what the authors' code computes (``eval_reconstruction`` of facebookresearch/poincare-embeddings, and gensim's
``ReconstructionEvaluation``) where no two distances are equal.

Nickel, Kiela: Poincaré Embeddings for Learning Hierarchical Representations, NeurIPS 2017, section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murp import threads
from murp.errors import ConfigError
from murp.geometry import Geometry, Hyperboloid, PoincareBall


@dataclass(frozen=True)
class Reconstruction:
    """The two metrics, and the numbers of pairs and nodes."""

    mean_rank: float
    map: float
    pairs: int
    nodes: int


def reconstruct(space: Geometry, points: NDArray[np.float64], pairs: NDArray[np.integer]) -> Reconstruction:
    """The reconstruction of ``pairs`` (n, 2) of node and ancestor, each once, by points (N, …) of a space."""
    from murp.hierarchy.numba_reconstruction import count

    if not isinstance(space, PoincareBall | Hyperboloid):
        raise ConfigError(f"reconstruction is measured on the Poincaré ball and the hyperboloid, not in {space.name}.")
    if len(pairs) == 0:
        raise ConfigError("there is no pair of a node and its ancestor to reconstruct.")
    points = np.ascontiguousarray(points, dtype=np.float64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    nodes, ancestors = pairs[order, 0].astype(np.int64), pairs[order, 1].astype(np.int64)
    subjects, first = np.unique(nodes, return_index=True)
    starts = np.append(first, len(nodes))
    coordinates = np.ascontiguousarray(points.T)
    norms = np.sqrt(np.square(points).sum(1)) * np.sqrt(space.c)
    gaps = (1 - norms) * (1 + norms)
    twice = np.zeros(len(nodes), np.int64)
    work = points.size * len(subjects)
    threads.share(count, coordinates, gaps, space.has_free_coordinates, subjects, starts, ancestors, twice, work=work)
    ranks = 1 + twice / 2
    ranks = ranks[np.lexsort((ranks, nodes))]
    place = np.arange(len(nodes)) - np.repeat(first, np.diff(starts)) + 1  # among the ancestors of a node, from 1 on
    precision = np.add.reduceat(place / (ranks + place - 1), first) / np.diff(starts)
    return Reconstruction(float(ranks.mean()), float(precision.mean()), len(nodes), len(subjects))
