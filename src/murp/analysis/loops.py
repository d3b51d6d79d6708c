"""Loops over the rows of :class:`murp.analysis.directed.Directed`, to be run as they are or compiled.

Loading what compiles takes a second, in which they run over tens of thousands of edges: see :func:`loops_for`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

SMALL = 100_000  # nodes and edges of a graph that these loops are through with before the compiled ones are loaded


def loops_for(starts: Any, targets: Any) -> Any:
    """The module whose loops to run on a graph: this one, or where it is large or they are there, the compiled ones."""
    if len(starts) + len(targets) < SMALL and "murp.analysis.graph_kernels" not in sys.modules:
        return sys.modules[__name__]
    from murp.analysis import graph_kernels

    return graph_kernels


def components(starts: Any, targets: Any) -> Any:
    """Tarjan's strongly connected components, without recursion; an edge between two leads to the smaller number."""
    n = len(starts) - 1
    component, order, low = np.full(n, -1), np.full(n, -1), np.empty(n, np.int64)
    following = starts[:-1].copy()
    path, open_nodes = np.empty(n, np.int64), np.empty(n, np.int64)
    visited, found, opened = 0, 0, 0
    for root in range(n):
        if order[root] >= 0:
            continue
        path[0], depth = root, 1
        while depth:
            node = path[depth - 1]
            if order[node] < 0:
                order[node] = low[node] = visited
                visited += 1
                open_nodes[opened] = node
                opened += 1
            if following[node] < starts[node + 1]:
                target = targets[following[node]]
                following[node] += 1
                if order[target] < 0:
                    path[depth] = target
                    depth += 1
                elif component[target] < 0:
                    low[node] = min(low[node], order[target])
                continue
            depth -= 1
            if depth:
                low[path[depth - 1]] = min(low[path[depth - 1]], low[node])
            if low[node] == order[node]:
                while component[node] < 0:
                    opened -= 1
                    component[open_nodes[opened]] = found
                found += 1
    return component


def distances(starts: Any, targets: Any, sources: Any) -> Any:
    """(n,) the number of edges from the nearest of ``sources``; -1 where none leads."""
    n = len(starts) - 1
    distance, queue = np.full(n, -1), np.empty(n, np.int64)
    count = 0
    for source in sources:
        if distance[source] < 0:
            distance[source] = 0
            queue[count] = source
            count += 1
    done = 0
    while done < count:
        node = queue[done]
        done += 1
        for target in targets[starts[node] : starts[node + 1]]:
            if distance[target] < 0:
                distance[target] = distance[node] + 1
                queue[count] = target
                count += 1
    return distance
