"""The hierarchy of a graph as the explorer draws it: one relation, a parent for each entity, and who matters.

A relation gives the parents; if there are several, the nearest one in the embedding is used. So the tree is the one
that the embedding implies: parents from the relation, depth from the norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from murp.analysis.depth import Levels, find_levels
from murp.analysis.relations import relation_edges
from murp.graph import KnowledgeGraph
from murp.hierarchy.tree_layout import sector_angles
from murp.models import Model

DEEP = 3  # levels below the top that make a relation a hierarchy
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The relation that orders most of a graph: ``relation`` and its levels; None if none orders anything.

    ``children`` and ``parents`` (E,) are the ends of its edges, ``rank`` (N,) the level below the top, -1 outside.
    Entities that it does not speak of join below those that another ordering relation puts them under: a continent by
    its name stands below what a continent is. ``ordering`` are the relations that have levels at all.
    """

    relation: int | None
    ordering: frozenset[int]
    rank: Numbers
    children: Numbers
    parents: Numbers

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> Hierarchy:
        """Of the relations that have at least three levels below the top, the one with most facts."""
        edges_of = sorted(enumerate(relation_edges(graph)), key=lambda part: -len(part[1]))
        found = [(relation, find_levels(edges), edges) for relation, edges in edges_of]
        ordering = [part for part in found if part[1].rank.max(initial=0) > 0 and part[1].roots < part[1].leaves]
        deep = [part for part in ordering if part[1].rank.max() >= DEEP]
        names = frozenset(relation for relation, _, _ in ordering)
        rank = np.full(graph.num_entities, -1)
        if not deep:
            return cls(None, names, rank, *np.empty((2, 0), dtype=np.int64))
        main = deep[0]
        rank[main[1].nodes] = main[1].rank
        children, parents = _downwards(main[1], main[2])
        down = rank[parents] < rank[children]  # not within a cycle, nor to itself
        ends = [(children[down], parents[down])]
        for _, levels, edges in ordering:
            children, parents = _downwards(levels, edges)
            joins = (rank[children] < 0) & (rank[parents] >= 0)
            ends.append((children[joins], parents[joins]))
            np.maximum.at(rank, ends[-1][0], rank[ends[-1][1]] + 1)
        return cls(main[0], names, rank, *(np.concatenate(column) for column in zip(*ends, strict=True)))


def _downwards(levels: Levels, edges: Numbers) -> tuple[Numbers, Numbers]:
    """The children and the parents of a relation's edges."""
    parents, children = edges.T if levels.direction == "down" else edges.T[::-1]
    return children, parents


class Tree:
    """``parent`` (N,) of each entity, -1 at the top; ``below`` (N,): how many it stands above, itself included."""

    def __init__(self, hierarchy: Hierarchy, model: Model) -> None:
        self.hierarchy = hierarchy
        rank, children, parents = hierarchy.rank, hierarchy.children, hierarchy.parents
        self.parent = np.full(len(rank), -1)
        if len(children):
            rows = model.parameters["entity"]
            pairs = torch.from_numpy(np.stack([children, parents])).to(rows.device)
            with torch.no_grad():
                below, above = (rows[some].to(model.dtype) for some in pairs)
                distances = model.geometry.distance(below, above).cpu().numpy()
            order = np.lexsort((distances, children))
            first = np.unique(children[order], return_index=True)[1]
            self.parent[children[order][first]] = parents[order][first]
        self.below = np.ones(len(rank), dtype=np.int64)
        for level in range(int(rank.max(initial=0)), 0, -1):
            members = np.flatnonzero((rank == level) & (self.parent >= 0))
            np.add.at(self.below, self.parent[members], self.below[members])

    def path(self, entity: int) -> list[int]:
        """From an entity to the top, both included."""
        path = [entity]
        while self.parent[path[-1]] >= 0:
            path.append(int(self.parent[path[-1]]))
        return path

    def angles(self) -> NDArray[np.float64]:
        """(N,) the direction of each entity, in radians: the middle of its sector of the tree.

        What stands in no hierarchy has none: NaN.
        """
        inside = self.hierarchy.rank >= 0
        place = np.cumsum(inside) - 1
        angles = np.full(len(inside), np.nan)
        angles[inside] = sector_angles(np.where(self.parent < 0, -1, place[self.parent])[inside])
        return angles


def importance(degree: Numbers, tree: Tree) -> NDArray[np.float64]:
    """(N,) who is named first: entities with many facts, and those high in the hierarchy with many below them."""
    return np.log1p(degree) + np.log(tree.below)
