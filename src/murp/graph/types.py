"""Type constraints: which entities may answer a question, learned from the training facts alone.

A *role* is a place of a relation: the tail of r, or its head (the tail of its reciprocal). Three rules:

1. An entity may stand in a role if a training fact puts it there, or if it has another role q of which entities often
   have this one too: of the entities with role q at least a share ``SHARE`` has it. So a town that no fact calls a
   place of birth may be one, since other towns are.
2. A relation is *single* where nearly every head (``ALONE``) has one tail: a product with one category. A head that has
   its tail in train has no second one, whichever of the two is asked for: neither a second category of this product,
   nor this product among those of another category. The same holds for the heads of a tail.
3. A role of fewer than ``FEWEST`` facts or entities says too little: every entity may have it. So may an entity without
   any training fact have every role.

Where only new facts are asked for, a head whose one tail is in valid or test has its tail too (``new_only``): those
facts are known, and are not to be predicted. Without ``new_only`` only train counts, since valid and test must not tell
the answer.

Krompaß, Baier, Tresp: Type-constrained representation learning in knowledge graphs, ISWC 2015 (domain and range of what
was observed).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.graph.knowledge_graph import KnowledgeGraph
from murp.graph.known_facts import Indices, KnownFacts
from murp.rows import Tabular

SHARE = 0.05
ALONE = 0.99
FEWEST = 20
_KEPT = 64 * 2**20  # bytes of masks that are kept ready

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RelationTypes:
    """What train says of a relation: how many entities have and may have its two roles, and how many each has.

    None: there are too few facts to say.
    """

    relation: str
    facts: int
    heads: int
    heads_allowed: int | None
    tails: int
    tails_allowed: int | None
    one_tail_a_head: bool
    one_head_a_tail: bool


class Types(Tabular):
    """The constraints of a graph; relations are numbered 0 … 2R-1, reciprocals included. It is a table of relations."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        from scipy import sparse

        self.graph = graph
        self.train = KnownFacts.of(graph, ["train"])
        facts = graph.with_reciprocals(graph.train)
        roles = 2 * graph.num_relations
        ones = np.ones(len(facts), np.int32)
        counted = sparse.csr_array((ones, (facts[:, 2], facts[:, 1])), shape=(graph.num_entities, roles))
        self._has: Any = (counted > 0).astype(np.float32)
        together = (self._has.T @ self._has).tocsc()
        self._entities = np.asarray(together.diagonal())
        self._together = together
        self._without = np.asarray(self._has.sum(1)).ravel() == 0
        self._facts = np.bincount(facts[:, 1], minlength=roles)
        self.open: Mask = (self._facts < FEWEST) | (self._entities < FEWEST)
        self.single: Mask = self._single(facts, roles)
        kept = max(8, _KEPT // max(1, graph.num_entities))
        self.allowed = lru_cache(maxsize=kept)(self._allowed)
        self.free = lru_cache(maxsize=kept)(self._free)

    def _single(self, facts: Any, roles: int) -> Mask:
        """Which relations (2R) give nearly every subject one object."""
        pairs = np.unique(facts[:, 0].astype(np.int64) * roles + facts[:, 1], return_counts=True)
        relation = pairs[0] % roles
        subjects = np.bincount(relation, minlength=roles)
        alone = np.bincount(relation[pairs[1] == 1], minlength=roles)
        return (subjects >= FEWEST) & (alone >= ALONE * subjects)

    def _allowed(self, relation: int) -> Mask:
        """Which entities (N) may be the object of a relation."""
        if self.open[relation]:
            return np.ones(self.graph.num_entities, bool)
        column = np.asarray(self._together[:, [relation]].todense()).ravel()
        fitting = column >= SHARE * np.maximum(self._entities, 1)
        fitting[relation] = True
        found = self._has @ fitting.astype(np.float32) > 0
        return np.asarray(found | self._without)

    def _free(self, relation: int, new_only: bool) -> Mask:
        """Which entities (N) may be the object of a relation for a new subject: not those that have their one."""
        found = self.allowed(relation)
        if not self.single[self._back(relation)]:
            return found
        facts = (self.graph.facts() if new_only else self.graph.train)[:, :3]
        r, end = relation % self.graph.num_relations, 2 if relation < self.graph.num_relations else 0
        found = found.copy()
        found[facts[facts[:, 1] == r, end]] = False
        return found

    def _back(self, relation: int) -> int:
        """The reciprocal of a relation."""
        return (relation + self.graph.num_relations) % (2 * self.graph.num_relations)

    @cached_property
    def _all_splits(self) -> KnownFacts:
        """The facts of every split."""
        return KnownFacts.of(self.graph)

    def taken(self, subjects: Indices, relations: Indices, *, new_only: bool = False) -> Mask:
        """Which questions (Q) have the one answer that they can have: in train, or with ``new_only`` in any split."""
        starts, ends = (self._all_splits if new_only else self.train).ranges(subjects, relations)
        return self.single[relations] & (ends > starts)

    def refused(self, subject: int, relation: int, *, new_only: bool = False) -> NDArray[np.int32]:
        """The entities that cannot answer one question, ascending; what train states can."""
        may = self.masks(np.array([subject]), np.array([relation]), new_only=new_only)[0]
        return np.flatnonzero(~may).astype(np.int32)

    def masks(self, subjects: Indices, relations: Indices, *, new_only: bool = False) -> Mask:
        """The same of Q questions: which entities may answer, (Q, N)."""
        found = np.stack([self.free(int(relation), new_only) for relation in relations])
        found[self.taken(subjects, relations, new_only=new_only)] = False
        rows, objects = self.train.objects_of(subjects, relations)
        found[rows, objects] = True
        return found

    def compatible(self, relation: int, heads: Indices, tails: Indices, k: int) -> Indices:
        """The places of the first ``k`` new facts (heads, relation, tails) that do not contradict an earlier one: no
        two tails of a head that can have one, no two heads of a tail that can have one."""
        one_tail, one_head = self.single[relation], self.single[self._back(relation)]
        if not one_tail and not one_head:
            return np.arange(min(k, len(heads)))
        used_heads: set[int] = set()
        used_tails: set[int] = set()
        kept: list[int] = []
        for place, (head, tail) in enumerate(zip(heads.tolist(), tails.tolist(), strict=True)):
            if len(kept) == k:
                break
            if (one_tail and head in used_heads) or (one_head and tail in used_tails):
                continue
            used_heads.add(head)
            used_tails.add(tail)
            kept.append(place)
        return np.array(kept, np.int64)

    def __repr__(self) -> str:
        return f"Types({int((~self.open).sum())} of {len(self.open)} roles of {self.graph.name} are constrained)"

    def __len__(self) -> int:
        return self.graph.num_relations

    def __iter__(self) -> Iterator[RelationTypes]:
        return (self[place] for place in range(len(self)))

    def __getitem__(self, place: int) -> RelationTypes:
        r = range(len(self))[place]
        back = r + len(self)
        sizes = [None if self.open[role] else int(self.allowed(role).sum()) for role in (back, r)]
        return RelationTypes(
            self.graph.relations.id(r),
            int(self._facts[r]),
            int(self._entities[back]),
            sizes[0],
            int(self._entities[r]),
            sizes[1],
            bool(self.single[r]),
            bool(self.single[back]),
        )

    def columns(self) -> dict[str, list[Any]]:
        """One row per relation."""
        return {name: [getattr(one, name) for one in self] for name in RelationTypes.__dataclass_fields__}
