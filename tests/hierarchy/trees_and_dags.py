"""Hierarchies whose shape is known, and how edges are counted that cross."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murp.graph import Vocabulary
from murp.hierarchy import Taxonomy


def ternary(levels: int = 5) -> NDArray[np.int64]:
    """The parents of a 3-ary tree, -1 for the root: 364 nodes for five levels below it."""
    n = sum(3**level for level in range(levels + 1))
    return np.array([-1, *((node - 1) // 3 for node in range(1, n))])


def of_parents(parents: NDArray[np.int64]) -> Taxonomy:
    nodes = np.flatnonzero(parents >= 0)
    return of_edges(np.column_stack([nodes, parents[nodes]]), len(parents))


def of_edges(edges: NDArray[np.int64], n: int) -> Taxonomy:
    return Taxonomy(Vocabulary("entity", [f"n{i}" for i in range(n)]), np.unique(edges, axis=0))


def random_tree(n: int, seed: int) -> NDArray[np.int64]:
    draw = np.random.default_rng(seed)
    return np.array([-1, *(int(draw.integers(node)) for node in range(1, n))])


def crossings(points: NDArray[np.float64], parents: NDArray[np.int64]) -> int:
    """How many pairs of edges without a common end cross, the edges drawn as geodesics of the disk.

    In Klein's disk, k = 2x/(1 + |x|²), geodesics are straight.
    """
    straight = 2 * points / (1 + np.square(points).sum(1, keepdims=True))
    below = np.flatnonzero(parents >= 0)
    above = parents[below]
    a, b = straight[below], straight[above]
    found = 0
    for i in range(len(below)):
        ends = (below[i], above[i])
        apart = ~(np.isin(below, ends) | np.isin(above, ends))
        apart[: i + 1] = False
        c, d = a[apart], b[apart]
        through = side(a[i], b[i], c) * side(a[i], b[i], d) < 0
        found += int((through & (side(c, d, a[i]) * side(c, d, b[i]) < 0)).sum())
    return found


def side(a: NDArray[np.float64], b: NDArray[np.float64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """On which side of the line from a to b the point p lies, by sign."""
    along, to = b - a, p - a
    turned: NDArray[np.float64] = along[..., 0] * to[..., 1] - along[..., 1] * to[..., 0]
    return turned
