"""A directed graph in the form in which its paths are counted: plain edges in, rows of successors out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murp.analysis.loops import loops_for

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

    def components(self) -> Numbers:
        """(n,) the strongly connected component of each node: those that reach each other share a number.

        Components are numbered 0 … C-1 so that an edge between two of them leads to the smaller number.
        """
        component: Numbers = loops_for(self.starts, self.targets).components(self.starts, self.targets)
        return component

    def distances(self, sources: Numbers) -> Numbers:
        """(n,) the number of edges to each node from the nearest of ``sources``; -1 where no way leads."""
        distance: Numbers = loops_for(self.starts, self.targets).distances(self.starts, self.targets, sources)
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
