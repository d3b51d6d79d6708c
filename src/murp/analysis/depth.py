"""Which end of a directed graph is the top, and how far below it each node lies."""

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
    hierarchy widens downwards, so the end with fewer components that have nothing beyond them is the top; where
    both ends have as many, edges are taken to lead down. ``depth`` (n,) is the number of edges between the nearest
    root and the node, for each of ``nodes`` (n,).
    """

    nodes: Numbers
    depth: Numbers
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
    return Levels(graph.nodes, depth[component], direction, len(beginnings), len(ends))


def shortest_path(edges: Edges, source: int, target: int) -> list[int] | None:
    """The nodes of a shortest path along the edges, both ends included; None where there is none."""
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
