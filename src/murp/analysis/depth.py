"""Which end of a directed graph is the top, and how deep each node is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from murp.analysis.directed import Directed, Edges, Numbers

Direction = Literal["up", "down"]


@dataclass(frozen=True, eq=False)
class Levels:
    """A directed graph read as a hierarchy; cycles count as one node, so all is said of the condensation.

    ``direction`` is where the edges lead: "down", from the roots to the leaves (has_part), or "up" (hypernym). A
    hierarchy widens downwards, so the end with fewer components that have nothing beyond them is the top; where both
    ends have as many, edges are taken to lead down. ``depth`` (n,) is the number of edges between the nearest root and
    the node, for each of ``nodes`` (n,); ``rank`` (n,) that of the longest way from a root. In a tree they are the
    same. If a relation is a transitive closure (every ancestor, not only parents), nearly every node is one edge below
    a root, and only the rank shows the levels.
    """

    nodes: Numbers
    depth: Numbers
    rank: Numbers
    direction: Direction
    roots: int
    leaves: int


def find_levels(edges: Edges) -> Levels:
    """Find the top and measure depths; ``edges`` has shape (E, 2)."""
    graph = Directed.of(edges)
    down, component = graph.condensed()
    turned = down.reversed()
    beginnings, ends = np.flatnonzero(np.diff(turned.starts) == 0), np.flatnonzero(np.diff(down.starts) == 0)
    direction: Direction = "down"
    if len(ends) < len(beginnings):
        direction, down, beginnings, ends = "up", turned, ends, beginnings
    # A graph without cycles has a way to every node from one that nothing leads to: no depth is missing.
    depth = down.distances(beginnings)
    return Levels(graph.nodes, depth[component], _ranks(down)[component], direction, len(beginnings), len(ends))


def _ranks(graph: Directed) -> Numbers:
    """(n,) edges of the longest way that leads to each node of a graph without cycles: a round a level."""
    rank = np.zeros(len(graph), dtype=np.int64)
    edges = graph.edges()
    waiting = np.bincount(edges[:, 1], minlength=len(graph))
    ready, level = np.flatnonzero(waiting == 0), 0
    while len(ready):
        rank[ready] = level
        counts = graph.starts[ready + 1] - graph.starts[ready]
        skipped = graph.starts[ready] - (np.cumsum(counts) - counts)
        reached = graph.targets[np.arange(counts.sum()) + np.repeat(skipped, counts)]
        waiting -= np.bincount(reached, minlength=len(graph))
        reached = np.unique(reached)
        ready, level = reached[waiting[reached] == 0], level + 1
    return rank


def shortest_path(edges: Edges, source: int, target: int) -> list[int] | None:
    """The nodes of a shortest path along the edges, both ends included; None if there is none."""
    graph = Directed.of(edges)
    ends = np.array([source, target])
    first, last = np.searchsorted(graph.nodes, ends)
    if not np.isin(ends, graph.nodes).all():
        return None
    left = graph.reversed().distances(np.array([last]))
    if left[first] < 0:
        return None
    path = [int(first)]
    while path[-1] != last:
        following = graph.targets[graph.starts[path[-1]] : graph.starts[path[-1] + 1]]
        path.append(int(following[left[following] == left[path[-1]] - 1][0]))
    return [int(node) for node in graph.nodes[path]]
