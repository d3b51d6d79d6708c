"""A directed graph in the form in which its paths are counted: plain edges in, rows of successors out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Edges = NDArray[np.int64]  # (E, 2), columns from, to; any numbers, duplicates and self-loops allowed
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Directed:
    """Nodes 0 … n-1 and, for each, the distinct other nodes its edges lead to.

    ``nodes`` (n,) are the numbers the edges used, ascending; the successors of node i are
    ``targets[starts[i] : starts[i + 1]]``. A self-loop keeps its node and adds no successor: it leads nowhere.
    """

    nodes: Numbers
    starts: Numbers
    targets: Numbers

    def __len__(self) -> int:
        return len(self.nodes)

    @classmethod
    def of(cls, edges: Edges) -> Directed:
        """The graph of ``edges``, shape (E, 2)."""
        edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        nodes, numbered = np.unique(edges, return_inverse=True)
        return cls(nodes, *_rows(numbered.reshape(-1, 2), len(nodes)))

    def edges(self) -> Edges:
        """(E, 2) in the numbering 0 … n-1: distinct, sorted, without self-loops."""
        return np.stack([np.repeat(np.arange(len(self)), np.diff(self.starts)), self.targets], axis=1)

    def reversed(self) -> Directed:
        """The same nodes, every edge turned round."""
        return Directed(self.nodes, *_rows(self.edges()[:, ::-1], len(self)))

    @cached_property
    def matrix(self) -> csr_array:
        """(n, n) with a 1 for each edge, as scipy searches it."""
        from scipy.sparse import csr_array  # a fifth of a second, which what measures no graph need not wait for

        rows = np.ones(len(self.targets)), self.targets.astype(np.int32), self.starts.astype(np.int32)
        return csr_array(rows, shape=(len(self), len(self)))

    def components(self) -> Numbers:
        """(n,) the strongly connected component of each node: those that reach each other share a number, 0 … C-1."""
        from scipy.sparse.csgraph import connected_components

        return np.asarray(connected_components(self.matrix, connection="strong")[1], dtype=np.int64)

    def distances(self, sources: Numbers) -> Numbers:
        """(n,) the number of edges to each node from the nearest of ``sources``; -1 where no way leads."""
        if len(sources) == 1:
            return self._distances_from(int(sources[0]))
        # One more node leads to all sources, so every other node is one step further from it.
        count, leading = len(self), np.unique(sources)
        starts = np.append(self.starts, len(self.targets) + len(leading))
        extended = Directed(np.arange(count + 1), starts, np.concatenate([self.targets, leading]))
        return np.maximum(extended._distances_from(count)[:count] - 1, -1)

    def _distances_from(self, source: int) -> Numbers:
        """(n,) the number of edges from one node; -1 where no way leads."""
        from scipy.sparse.csgraph import breadth_first_order

        order, before = breadth_first_order(self.matrix, source)
        place = np.empty(len(self), dtype=np.int64)
        place[order] = np.arange(len(order))
        # Nodes are found in the order of those that they are found from: these places ascend, a level is one stretch.
        came_from = place[before[order[1:]]]
        distance = np.full(len(self), -1)
        first, end, level = 0, 1, 0
        while first < end:
            distance[order[first:end]] = level
            first, end, level = end, 1 + int(np.searchsorted(came_from, end)), level + 1
        return distance

    def condensed(self) -> tuple[Directed, Numbers]:
        """The graph of the components (``nodes`` are their numbers), which has no cycle, and :meth:`components`."""
        component = self.components()
        count = int(component.max(initial=-1)) + 1
        return Directed(np.arange(count), *_rows(component[self.edges()], count)), component


def _rows(edges: Edges, count: int) -> tuple[Numbers, Numbers]:
    """(starts, targets) of the distinct edges between ``count`` nodes, self-loops left out."""
    edges = edges[edges[:, 0] != edges[:, 1]]
    keys = np.unique(edges[:, 0] * max(count, 1) + edges[:, 1])
    sources, targets = np.divmod(keys, max(count, 1))
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(sources, minlength=count), out=starts[1:])
    return starts, targets
