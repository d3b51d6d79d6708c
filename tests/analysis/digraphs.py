"""Directed graphs for tests of paths, and the plain way to count in them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

# Few nodes for many edges, so that cycles, self-loops, duplicates and separate parts all occur.
edge_lists = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=3 * n)
)


def edges(listed) -> np.ndarray:
    return np.array(listed, dtype=np.int64).reshape(-1, 2)


def random_edges(seed: int, nodes: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, nodes, size=(count, 2))


def distances(edges: np.ndarray) -> np.ndarray:
    """(n, n) steps from row to column by powers of the adjacency matrix; -1 without a path, 0 on the diagonal."""
    nodes, numbered = np.unique(edges, return_inverse=True)
    adjacent = np.zeros((len(nodes), len(nodes)), dtype=np.float32)
    adjacent[tuple(numbered.reshape(-1, 2).T)] = 1
    reached = np.eye(len(nodes), dtype=bool)
    found = np.where(reached, 0, -1)
    for step in range(1, len(nodes) + 1):
        reached = (reached.astype(np.float32) @ adjacent) > 0
        new = reached & (found < 0)
        if not new.any():  # a pair further apart has one on its path that is this far
            break
        found[new] = step
    return found
