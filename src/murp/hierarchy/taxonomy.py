"""A taxonomy: the parents of each node, and the transitive closure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from murp.errors import ConfigError, DataError
from murp.graph import KnowledgeGraph, Vocabulary

Pairs = NDArray[np.int64]  # (n, 2), columns below, above
FURTHER = "{} (further up)"  # the relation of a node to ancestors that are not its parents


@dataclass(frozen=True, eq=False)
class Taxonomy:
    """Nodes 0 … n-1 with their names, and ``edges`` (E, 2) from a node to the one above it, each once, no cycles."""

    nodes: Vocabulary
    edges: Pairs
    relation: str = "above"

    @classmethod
    def of(cls, graph: KnowledgeGraph, relations: Sequence[str] = (), *, above: str = "tail") -> Taxonomy:
        """The hierarchy of some relations of a graph, over all splits; by default the only relation.

        ``above`` says which side of a fact is the higher node: the tail of (chair, hypernym, furniture), the head of
        (Asia, has_part, Japan).
        """
        if above not in ("head", "tail"):
            raise ConfigError(f"above must be head or tail, not {above!r}.")
        if not relations and graph.num_relations != 1:
            names = ", ".join(graph.relations.label(i) for i in range(min(graph.num_relations, 12)))
            raise ConfigError(
                f"{graph.name} has {graph.num_relations} relations: choose those that make the hierarchy ({names})."
            )
        wanted = [graph.relations.find(name) for name in relations] or [0]
        facts = graph.facts()
        facts = facts[np.isin(facts[:, 1], wanted)]
        edges = facts[:, [2, 0]] if above == "head" else facts[:, [0, 2]]
        edges = np.unique(edges[edges[:, 0] != edges[:, 1]].astype(np.int64), axis=0)
        if len(edges) == 0:
            shown = ", ".join(graph.relations.label(i) for i in wanted)
            raise DataError(f"{graph.name} has no fact of {shown} between two different nodes: there is no hierarchy.")
        used, numbered = np.unique(edges, return_inverse=True)
        vocabulary = graph.entities.table().take(pa.array(used))
        columns = {name: vocabulary[name] for name in vocabulary.column_names}
        nodes = Vocabulary("entity", columns["id"], columns.get("name"), columns.get("gloss"))
        return cls(nodes, numbered.reshape(-1, 2), " or ".join(graph.relations.id(i) for i in wanted))

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def parents(self) -> list[list[int]]:
        """The nodes directly above each node."""
        found: list[list[int]] = [[] for _ in range(len(self))]
        for below, above in self.edges.tolist():
            found[below].append(above)
        return found

    @cached_property
    def order(self) -> list[int]:
        """The nodes in an order in which every node follows those above it; a cycle is an error that names it."""
        waiting = [len(above) for above in self.parents]
        children: list[list[int]] = [[] for _ in range(len(self))]
        for below, above in self.edges.tolist():
            children[above].append(below)
        order = [node for node in range(len(self)) if waiting[node] == 0]
        for node in order:
            for child in children[node]:
                waiting[child] -= 1
                if waiting[child] == 0:
                    order.append(child)
        if len(order) < len(self):
            left = next(node for node in range(len(self)) if waiting[node])
            raise DataError(
                f"{self.relation} has a cycle, in which each node is above itself: {self._cycle(left, waiting)}. "
                "Remove one of these facts."
            )
        return order

    def _cycle(self, node: int, waiting: list[int]) -> str:
        path = [node]
        while path.count(path[-1]) == 1:
            path.append(next(above for above in self.parents[path[-1]] if waiting[above]))
        path = path[path.index(path[-1]) :]
        names = [self.nodes.label(one) for one in path]
        return " → ".join(names if len(names) <= 8 else [*names[:7], "…"])

    @cached_property
    def roots(self) -> list[int]:
        """The nodes without a parent."""
        return [node for node in self.order if not self.parents[node]]

    def closure(self) -> Pairs:
        """All pairs of a node and a node above it, (n, 2): sorted, each pair once."""
        above: list[set[int]] = [set() for _ in range(len(self))]
        for node in self.order:
            for parent in self.parents[node]:
                above[node] |= above[parent]
                above[node].add(parent)
        lengths = [len(one) for one in above]
        ancestors = np.array([one for found in above for one in sorted(found)], dtype=np.int64)
        return np.column_stack([np.repeat(np.arange(len(self)), lengths), ancestors])

    def tree(self) -> NDArray[np.int64]:
        """The parent of each node in a spanning tree, -1 for the root; of several parents the highest.

        A taxonomy of several roots has no spanning tree.
        """
        if len(self.roots) > 1:
            some = ", ".join(self.nodes.label(root) for root in self.roots[:5])
            raise DataError(
                f"{self.relation} has {len(self.roots):,} roots, so it is not one tree but several "
                f"({some}{', …' if len(self.roots) > 5 else ''}). Take the nodes of one of them, or add a node above "
                "them all."
            )
        place = {node: i for i, node in enumerate(self.order)}
        return np.array([min(above, key=place.__getitem__) if above else -1 for above in self.parents])

    def graph(self, name: str, source: str = "") -> KnowledgeGraph:
        """The closure as training facts: the relation itself for parents, ``FURTHER`` for other ancestors."""
        pairs = self.closure()
        direct = set(map(tuple, self.edges.tolist()))
        further = np.array([(below, above) not in direct for below, above in pairs.tolist()], dtype=np.int32)
        facts = np.column_stack([pairs[:, 0], further, pairs[:, 1]]).astype(np.int32)
        facts = facts[np.argsort(further, kind="stable")]
        relations = Vocabulary("relation", [self.relation, FURTHER.format(self.relation)])
        nothing = np.zeros((0, 3), np.int32)
        return KnowledgeGraph(name, self.nodes, relations, facts, nothing, nothing, source)
