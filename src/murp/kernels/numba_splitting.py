"""Compiled loops of the split of facts on disk: see ``murp.graph.large.splitting``."""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.compiling import announce, kernel
from murp.kernels.numba_candidates import mix

announce(__name__, "the reader of large graphs")


@kernel
def keys_by_bucket(
    rows: Any, bucket_of: Any, bounds: Any, relations: int, entities: int, keys: Any, places: Any
) -> None:
    """The keys of rows (n, 3) into ``keys`` (n), those of one bucket together; ``places`` (buckets + 1): where.

    A key is (h - h₀)·R·E + r·E + t, where h₀ is the first head of the bucket.
    """
    for b in range(len(places)):
        places[b] = 0
    for i in range(len(rows)):
        places[bucket_of[rows[i, 0]] + 1] += 1
    for b in range(1, len(places)):
        places[b] += places[b - 1]
    for i in range(len(rows)):
        b = bucket_of[rows[i, 0]]
        keys[places[b]] = (np.int64(rows[i, 0] - bounds[b]) * relations + rows[i, 1]) * entities + rows[i, 2]
        places[b] += 1
    for b in range(len(places) - 1, 0, -1):
        places[b] = places[b - 1]
    places[0] = 0


@kernel
def count_mentions(keys: Any, first: int, relations: int, entities: int, of_entity: Any, of_relation: Any) -> None:
    """Add how often distinct facts mention each entity and relation; a fact of one with itself mentions it twice."""
    for i in range(len(keys)):
        rest, tail = keys[i] // entities, keys[i] % entities
        of_entity[first + rest // relations] += 1
        of_entity[tail] += 1
        of_relation[rest % relations] += 1


@kernel
def hold_out(
    order: Any,
    keys: Any,
    starts: Any,
    bounds: Any,
    relations: int,
    entities: int,
    of_entity: Any,
    of_relation: Any,
    held: Any,
) -> int:
    """The loop of :func:`murp.graph.splitting.split`: facts (h, r, t) into ``held`` (wanted, 3), as many as can be.

    ``order`` are places among the distinct facts, whose ``keys`` lie bucket after bucket; bucket b begins at
    ``starts[b]`` and its heads with ``bounds[b]``.
    """
    count = 0
    for i in range(len(order)):
        if count == len(held):
            break
        place = order[i]
        low, high = 0, len(starts) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if starts[middle] <= place:
                low = middle
            else:
                high = middle
        rest, tail = keys[place] // entities, keys[place] % entities
        head, relation = bounds[low] + rest // relations, rest % relations
        mentions = 2 if head == tail else 1
        if of_entity[head] > mentions and of_entity[tail] > mentions and of_relation[relation] > 1:
            of_entity[head] -= 1
            of_entity[tail] -= 1
            of_relation[relation] -= 1
            held[count, 0], held[count, 1], held[count, 2] = head, relation, tail
            count += 1
    return count


@kernel
def index_facts(facts: Any, slots: Any) -> None:
    """Put distinct facts (n, 3) into empty slots, each as 1 + its place."""
    mask = np.int64(len(slots) - 1)
    for i in range(len(facts)):
        at = _hash(facts[i, 0], facts[i, 1], facts[i, 2]) & mask
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = i + 1


@kernel
def parts_of(rows: Any, facts: Any, cut: int, slots: Any, parts: Any) -> None:
    """The part of each row (n, 3): 1 of the first ``cut`` facts, 2 of the others, 0 of what is none of them."""
    mask = np.int64(len(slots) - 1)
    for i in range(len(rows)):
        parts[i] = 0
        at = _hash(rows[i, 0], rows[i, 1], rows[i, 2]) & mask
        while slots[at] != 0:
            j = slots[at] - 1
            if facts[j, 0] == rows[i, 0] and facts[j, 1] == rows[i, 1] and facts[j, 2] == rows[i, 2]:
                parts[i] = 1 if j < cut else 2
                break
            at = (at + 1) & mask


@kernel
def _hash(head: Any, relation: Any, tail: Any) -> Any:
    code = mix(mix((np.uint64(head) << np.uint64(32)) | np.uint64(tail)) ^ np.uint64(relation))
    return np.int64(code >> np.uint64(1))
