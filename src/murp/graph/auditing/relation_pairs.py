"""Redundant relations: near-duplicates, near-inverses and symmetric relations.

With P(r) the set of pairs (h, t), h ≠ t, that relation r holds between, and P⁻¹(r) the same pairs reversed:
q repeats r as far as |P(r) ∩ P(q)| / |P(r)| says, is its inverse as far as |P(r) ∩ P⁻¹(q)| / |P(r)| says,
and r is symmetric as far as |P(r) ∩ P⁻¹(r)| / |P(r)| says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from murp.graph.keys import Keys, pack
from murp.graph.knowledge_graph import KnowledgeGraph

Kind = Literal["duplicate", "inverse", "symmetric"]

_THRESHOLD = 0.8
_FEWEST_PAIRS = 5  # of a smaller relation no share says much


@dataclass(frozen=True)
class RelationPair:
    """Relations ``first`` and ``second`` share ``shared`` pairs, of ``first_size`` and ``second_size``."""

    kind: Kind
    first: int
    second: int
    shared: int
    first_size: int
    second_size: int

    @property
    def both_ways(self) -> bool:
        """Whether the threshold is passed from either side; otherwise one relation is a part of the other."""
        return self.shared >= _THRESHOLD * max(self.first_size, self.second_size)


def relation_pairs(graph: KnowledgeGraph) -> list[RelationPair]:
    """Pairs of which one relation has at least 80 % of its pairs in the other, largest overlap first.

    Counted over the distinct facts of all splits. Sorting does the work: O(n log n) time and O(n) memory for
    n facts, plus n for every further relation that holds between the same two entities.
    """
    relations = graph.num_relations
    facts = graph.facts()
    both = graph.with_reciprocals(facts[facts[:, 0] != facts[:, 2]])
    sizes = (graph.num_entities, graph.num_entities, 2 * relations)
    keys = np.sort(pack((both[:, 0], both[:, 2], both[:, 1]), sizes))
    keys = keys[np.diff(keys, prepend=-1) > 0]  # distinct; on many millions np.unique is far slower
    pairs, relation = np.divmod(keys, max(2 * relations, 1))
    size = np.bincount(relation, minlength=2 * relations)
    found = []
    for code, shared in zip(*_shared(pairs, relation, 2 * relations), strict=True):
        first, second = divmod(int(code), 2 * relations)
        reversed_ = second >= relations
        second -= relations if reversed_ else 0
        smaller = min(size[first], size[second])
        # (r, q reversed) and (q, r reversed) count the same thing; one of them is enough.
        if first > second or smaller < _FEWEST_PAIRS or shared < _THRESHOLD * smaller:
            continue
        kind: Kind = "symmetric" if first == second else "inverse" if reversed_ else "duplicate"
        found.append(RelationPair(kind, first, second, int(shared), int(size[first]), int(size[second])))
    return sorted(found, key=lambda pair: (-pair.shared, pair.first, pair.second))


def _shared(pairs: Keys, relation: Keys, count: int) -> tuple[Keys, NDArray[np.int64]]:
    """Codes r · count + q of relations between the same pair, r < q, r not reversed, and how many pairs.

    ``pairs`` is sorted: relations of one pair stand together, so comparing every row with the one d places
    on, for d = 1, 2, … until no two belong together, meets all of them.
    """
    codes, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    rows = np.flatnonzero(relation < count // 2)
    for distance in range(1, count):
        rows = rows[rows < len(pairs) - distance]
        rows = rows[pairs[rows] == pairs[rows + distance]]
        if not len(rows):
            break
        code, number = np.unique(relation[rows] * count + relation[rows + distance], return_counts=True)
        codes.append(code)
        counts.append(number)
    code, position = np.unique(np.concatenate(codes), return_inverse=True)
    return code, np.bincount(position.reshape(-1), weights=np.concatenate(counts), minlength=len(code)).astype(np.int64)
