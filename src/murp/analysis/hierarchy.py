"""How hierarchical a directed graph is: the Krackhardt score and the lengths of its paths, both exact.

Pairs are ordered pairs (x, y) of different nodes. Duplicate edges and self-loops change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murp.analysis.directed import Directed, Edges, Numbers


def krackhardt_score(edges: Edges) -> float:
    """The share of pairs with a path x → y that have none y → x (the paper's appendix on the score).

        Khs = #{x ≠ y : R_xy = 1, R_yx = 0} / #{x ≠ y : R_xy = 1},    R_xy = 1 where a path leads from x to y

    1 for a graph without cycles, 0 where every path has a way back, and 0 if there is no path at all: such a
    graph orders nothing. ``edges`` has shape (E, 2).

    Two nodes reach each other exactly where they share a strongly connected component, so with components of n_c nodes
    Khs = one-way / (one-way + Σ n_c (n_c - 1)), where one-way pairs are counted on the condensation.
    """
    condensed, component = Directed.of(edges).condensed()
    sizes = np.bincount(component, minlength=len(condensed))
    one_way = int(_pairs_by_distance(condensed, sizes).sum())
    mutual = int((sizes * (sizes - 1)).sum())
    return one_way / (one_way + mutual) if one_way else 0.0


def score_text(score: float) -> str:
    """A score as it is printed: 1.000 where no pair has a way back, and only there."""
    return f"{score if score == 1 else min(score, 0.999):.3f}"


@dataclass(frozen=True)
class ShortestPaths:
    """The shortest paths between all pairs that a path joins.

    ``longest`` of them in edges (the paper's Max Path; 0 if there is no path), ``mean`` length (its Avg Path;
    None if there is none) and the number of ``pairs``.
    """

    longest: int
    mean: float | None
    pairs: int


def shortest_paths(edges: Edges) -> ShortestPaths:
    """Over all pairs of the graph of ``edges``, shape (E, 2)."""
    graph = Directed.of(edges)
    pairs = _pairs_by_distance(graph, np.ones(len(graph), dtype=np.int64))
    total = int(pairs.sum())
    if not total:
        return ShortestPaths(0, None, 0)
    return ShortestPaths(int(np.flatnonzero(pairs)[-1]), float(pairs @ np.arange(len(pairs)) / total), total)


def _pairs_by_distance(graph: Directed, sizes: Numbers) -> Numbers:
    """(n + 1,) how many ordered pairs of members of different nodes are d edges apart; node i has ``sizes[i]`` members.

    A breadth-first search from every member with bit sets, 64 at a time: time is at most that of a search for each
    member, and a 64th of it where searches overlap; memory O(n + E).
    """
    from murp.analysis import numba_distances  # the compiler's library, which what counts no pairs need not wait for

    offsets = np.concatenate([[0], np.cumsum(sizes)])
    words, nodes = np.zeros((3, len(graph)), dtype=np.uint64), np.empty((3, len(graph)), dtype=np.int64)
    pairs = np.zeros(len(graph) + 1, dtype=np.int64)
    # A word at a time from Python, so that Ctrl-C is heard on a large graph.
    for first in range(0, int(offsets[-1]), numba_distances.WORD):
        numba_distances.count_distances(graph.starts, graph.targets, offsets, first, words, nodes, pairs)
    return pairs
