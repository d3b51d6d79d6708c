"""What each relation of a knowledge graph looks like as a directed graph, head → tail, over all three splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from murp.analysis.depth import Direction, find_levels
from murp.analysis.directed import Edges
from murp.analysis.hierarchy import krackhardt_score, shortest_paths
from murp.graph import KnowledgeGraph

Cardinality = Literal["1-1", "1-n", "n-1", "n-n"]

MANY = 1.5  # the usual threshold: from so many tails a head on, on average, a head has many
# The paper names no thresholds. It counts also_see, score .24, as hierarchical; with paths of four edges the rule comes
# closest to the 43 relations it chose as the hierarchical ones of NELL-995.
LEAST_SCORE = 0.2
LEAST_PATH = 4


@dataclass(frozen=True)
class RelationProfile:
    """One relation.

    ``edges`` are its distinct facts over ``entities``. ``krackhardt``, ``longest_path``, ``mean_path``: see
    :mod:`murp.analysis.hierarchy`. ``symmetry`` is the share of edges between different entities whose reverse is
    stated too (None if there is no such edge). ``cardinality`` is read from the mean ``tails_per_head`` and
    ``heads_per_tail``: "1-n" is one head, many tails. ``direction``, ``roots`` and ``leaves``: see
    :class:`murp.analysis.depth.Levels`.
    """

    relation: str
    edges: int
    entities: int
    krackhardt: float
    longest_path: int
    mean_path: float | None
    symmetry: float | None
    tails_per_head: float
    heads_per_tail: float
    cardinality: Cardinality
    direction: Direction
    roots: int
    leaves: int

    @property
    def hierarchical(self) -> bool:
        """Whether it orders its entities over several levels: a score of at least .2 and paths of four edges."""
        return self.krackhardt >= LEAST_SCORE and self.longest_path >= LEAST_PATH


def relation_edges(graph: KnowledgeGraph) -> list[Edges]:
    """The distinct edges (head, tail) of each relation, shape (E_r, 2), over train, valid and test, sorted."""
    facts = np.unique(graph.facts()[:, [1, 0, 2]].astype(np.int64), axis=0)
    starts = np.searchsorted(facts[:, 0], np.arange(1, graph.num_relations))
    return np.split(facts[:, 1:], starts)


def relation_profiles(graph: KnowledgeGraph) -> list[RelationProfile]:
    """Every relation, in the graph's order."""
    return [profile(graph.relations.id(r), edges) for r, edges in enumerate(relation_edges(graph))]


def profile(relation: str, edges: Edges) -> RelationProfile:
    """The profile of one relation's distinct edges, shape (E, 2)."""
    paths, levels = shortest_paths(edges), find_levels(edges)
    tails_per_head, heads_per_tail = (len(edges) / max(len(np.unique(edges[:, side])), 1) for side in (0, 1))
    return RelationProfile(
        relation=relation,
        edges=len(edges),
        entities=len(levels.nodes),
        krackhardt=krackhardt_score(edges),
        longest_path=paths.longest,
        mean_path=paths.mean,
        symmetry=_symmetry(edges),
        tails_per_head=tails_per_head,
        heads_per_tail=heads_per_tail,
        cardinality=_cardinality(tails_per_head, heads_per_tail),
        direction=levels.direction,
        roots=levels.roots,
        leaves=levels.leaves,
    )


def _symmetry(edges: Edges) -> float | None:
    edges = edges[edges[:, 0] != edges[:, 1]]
    if not len(edges):
        return None
    size = int(edges.max()) + 1
    keys, turned = edges @ np.array([size, 1]), edges @ np.array([1, size])
    return float(np.isin(turned, keys).mean())


def _cardinality(tails_per_head: float, heads_per_tail: float) -> Cardinality:
    if heads_per_tail < MANY:
        return "1-1" if tails_per_head < MANY else "1-n"
    return "n-1" if tails_per_head < MANY else "n-n"
