"""Split one set of facts into train, valid and test, so that all entities and relations of valid and test are in train.

The algorithm: go through the distinct facts in a random order (numpy's Generator, ``seed``) and hold one
out if its head, its relation and its tail each keep at least one other fact in train; stop when enough
are held out. A fact refused once would be refused later too, since what is left for train only shrinks:
one pass holds out as many as its order allows. Of the held-out facts the first part is valid, the rest
test. Every row of a fact (duplicates) goes where the fact goes, and rows keep the order of the file.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murp.graph.keys import fact_keys
from murp.graph.knowledge_graph import Triples

_CHUNK = 100_000  # candidates looked at between two conversions to Python integers


def split(triples: Triples, *, seed: int, valid: float = 0.05, test: float = 0.05) -> tuple[Triples, Triples, Triples]:
    """(train, valid, test) rows of ``triples``, shape (n, 3), values 0 … E-1, 0 … R-1, 0 … E-1.

    ``valid`` and ``test`` are shares of the distinct facts, rounded, at least one fact each unless it is 0. If fewer
    can be held out than wanted, valid and test share them in proportion, and may be empty (in a tree no fact can be
    held out: each one is the only fact of a leaf).
    """
    if not len(triples):
        return triples, triples, triples
    entities = int(triples[:, [0, 2]].max()) + 1
    relations = int(triples[:, 1].max()) + 1
    _, first, fact_of_row = np.unique(fact_keys(triples, entities, relations), return_index=True, return_inverse=True)
    facts = triples[first]
    order = np.random.default_rng(seed).permutation(len(facts))
    wanted_valid, wanted_test = (max(1, round(share * len(facts))) if share else 0 for share in (valid, test))
    if not wanted_valid + wanted_test:
        return triples, triples[:0], triples[:0]
    held = _hold_out(facts, order, wanted_valid + wanted_test, entities, relations)
    cut = round(len(held) * wanted_valid / (wanted_valid + wanted_test))
    part = np.zeros(len(facts), dtype=np.int8)
    part[held[:cut]] = 1
    part[held[cut:]] = 2
    part_of_row = part[fact_of_row.reshape(-1)]
    return triples[part_of_row == 0], triples[part_of_row == 1], triples[part_of_row == 2]


def _hold_out(facts: Triples, order: NDArray[np.int64], count: int, entities: int, relations: int) -> NDArray[np.int64]:
    """Up to ``count`` positions of facts, in ``order``, without which the rest still covers everything."""
    # Mentions left for train; a self-loop mentions its entity twice. Lists, as the loop reads single items.
    of_entity = np.bincount(facts[:, [0, 2]].reshape(-1), minlength=entities).tolist()
    of_relation = np.bincount(facts[:, 1], minlength=relations).tolist()
    held: list[int] = []
    for begin in range(0, len(order), _CHUNK):
        candidates = order[begin : begin + _CHUNK]
        for position, (head, relation, tail) in zip(candidates.tolist(), facts[candidates].tolist(), strict=True):
            if len(held) == count:
                return np.array(held)
            mentions = 2 if head == tail else 1
            if of_entity[head] > mentions and of_entity[tail] > mentions and of_relation[relation] > 1:
                of_entity[head] -= 1
                of_entity[tail] -= 1
                of_relation[relation] -= 1
                held.append(position)
    return np.array(held, dtype=np.int64)
