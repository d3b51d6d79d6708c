"""Known facts by question: which objects are known, and in which split.

A ranking is *filtered* by them: other right answers to the same question are left out. Predictions leave known facts
out, or show the split that has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, Triples

Indices = NDArray[np.int64]

_BLOCK = 2**22  # facts that are looked through at a time
_SIEVE_BITS = 27  # of a table that says which facts are worth a search: 128 MiB at most
_SPLIT_BITS = 2  # enough for the place of a split in SPLITS


class KnownFacts:
    """The objects of every (subject, relation), relations 0 … 2R-1 with reciprocals.

    A fact (s, r, o) lies under the key s·2R + r. ``keys`` (K) holds the distinct keys in ascending order,
    ``objects`` (F) the objects of the distinct facts in the order of their keys and ascending within a key,
    and those of ``keys[k]`` are ``objects[offsets[k]:offsets[k + 1]]``. ``splits`` (F) says which split states each
    fact, as its place in ``SPLITS``. Repeated facts count once and belong to the first split that states them.
    """

    def __init__(self, facts: Triples, num_relations: int, splits: ArrayLike = 0) -> None:
        """``facts``: (F', 3), reciprocals included; ``num_relations``: R, without them; ``splits``: one, or (F')."""
        self._stride = 2 * num_relations
        of_fact = np.broadcast_to(np.asarray(splits, dtype=np.int64), len(facts))
        keys, objects, places = _sorted_distinct(self._keys(facts[:, 0], facts[:, 1]), facts[:, 2], of_fact)
        starts = np.flatnonzero(_differs_from_the_one_before(keys))
        self.keys: Indices = keys[starts]
        self.offsets: Indices = np.append(starts, len(keys))
        self.objects: NDArray[np.int32] = objects.astype(np.int32)
        self.splits: NDArray[np.int8] = places.astype(np.int8)

    @classmethod
    def of(cls, graph: KnowledgeGraph, splits: Sequence[Split] = SPLITS) -> KnownFacts:
        """Every fact of these splits, and its reciprocal."""
        parts = [graph.split(split) for split in splits]
        places = np.repeat([SPLITS.index(split) for split in splits], [len(part) for part in parts])
        facts = np.concatenate([np.zeros((0, 3), np.int32), *parts])
        return cls(graph.with_reciprocals(facts), graph.num_relations, np.tile(places, 2))

    @classmethod
    def of_question(cls, graph: KnowledgeGraph, subject: int, relation: int) -> KnownFacts:
        """Only the facts that answer one question: a scan, since sorting all facts would take longer."""
        heads, r = divmod(relation, graph.num_relations)
        given = 2 if heads else 0
        parts = [graph.split(split) for split in SPLITS]
        found = [part[(part[:, given] == subject) & (part[:, 1] == r)] for part in parts]
        places = np.repeat(np.arange(len(SPLITS)), [len(part) for part in found])
        facts = np.concatenate(found)
        facts = facts[:, ::-1] + np.array([0, graph.num_relations, 0], dtype=np.int32) if heads else facts
        return cls(facts, graph.num_relations, places)

    @classmethod
    def of_questions(cls, graph: KnowledgeGraph, subjects: Indices, relations: Indices) -> KnownFacts:
        """Only the facts that answer some questions (Q): block by block, since sorting all facts would take more
        memory.

        A search among millions of questions takes a microsecond a fact. Nearly all facts are left out before it by the
        last bits of their keys, in a few nanoseconds.
        """
        stride = 2 * graph.num_relations
        asked = np.sort(subjects.astype(np.int64) * stride + relations)  # np.unique takes ten times as long
        asked = asked[_differs_from_the_one_before(asked)]
        last_bits = (1 << min(_SIEVE_BITS, (8 * len(asked)).bit_length())) - 1
        sieve = np.zeros(last_bits + 1, dtype=bool)
        sieve[asked & last_bits] = True
        found, places = [np.zeros((0, 3), np.int32)], [np.zeros(0, np.int64)]
        for place, split in enumerate(SPLITS):
            facts = graph.split(split)
            for start in range(0, len(facts), _BLOCK):
                block = graph.with_reciprocals(facts[start : start + _BLOCK])
                keys = block[:, 0].astype(np.int64) * stride + block[:, 1]
                likely = sieve[keys & last_bits]
                block, keys = block[likely], keys[likely]
                at = np.minimum(np.searchsorted(asked, keys), len(asked) - 1)
                found.append(block[asked[at] == keys])
                places.append(np.full(len(found[-1]), place))
        return cls(np.concatenate(found), graph.num_relations, np.concatenate(places))

    def objects_of(self, subjects: ArrayLike, relations: ArrayLike) -> tuple[Indices, Indices]:
        """Every known object of each of B queries, flat: query ``rows[i]`` has the object ``objects[i]``.

        Rows are ascending, and so are the objects of a row; a query without known facts has none.
        """
        starts, ends = self.ranges(subjects, relations)
        counts = ends - starts
        rows = np.repeat(np.arange(len(counts)), counts)
        skipped = starts - (np.cumsum(counts) - counts)
        positions = np.arange(len(rows)) + np.repeat(skipped, counts)
        return rows, self.objects[positions].astype(np.int64)

    def split_of(self, subjects: Indices, relations: Indices, objects: Indices) -> NDArray[np.int8]:
        """The place in ``SPLITS`` of the split that states (s, r, o), or -1; (B), (B), (B, k) → (B, k)."""
        if len(self.objects) == 0:
            return np.full(objects.shape, -1, dtype=np.int8)
        starts, ends = self.ranges(subjects, relations)
        places = self._places(starts, ends, objects)
        at = np.minimum(places, len(self.objects) - 1)
        known = (places < ends[:, None]) & (self.objects[at] == objects)
        return np.where(known, self.splits[at], np.int8(-1))

    def splits_of(self, subject: int, relation: int, objects: Indices) -> NDArray[np.int8]:
        """The same for one question, (k) → (k): several times as fast, for who answers one after the other."""
        key = subject * self._stride + relation
        at = self.keys.searchsorted(key)
        if at == len(self.keys) or self.keys[at] != key:
            return np.full(len(objects), -1, dtype=np.int8)
        own = slice(self.offsets[at], self.offsets[at + 1])
        known, splits = self.objects[own], self.splits[own]
        places = np.minimum(known.searchsorted(objects), len(known) - 1)
        return np.where(known[places] == objects, splits[places], np.int8(-1))

    def states(self, subjects: Indices, relations: Indices, objects: Indices) -> NDArray[np.bool_]:
        """Whether (s, r, o) is known; (B), (B), (B, k) → (B, k)."""
        stated: NDArray[np.bool_] = self.split_of(subjects, relations, objects) >= 0
        return stated

    def ranges(self, subjects: ArrayLike, relations: ArrayLike) -> tuple[Indices, Indices]:
        """Where in ``objects`` those of each query begin and end; an empty range for an unknown key."""
        asked = self._keys(subjects, relations)
        position = np.searchsorted(self.keys, asked)
        found = position < len(self.keys)
        found[found] = self.keys[position[found]] == asked[found]
        return (
            np.where(found, self.offsets[position], 0),
            np.where(found, self.offsets[np.minimum(position + 1, len(self.keys))], 0),
        )

    def _keys(self, subjects: ArrayLike, relations: ArrayLike) -> Indices:
        return np.asarray(subjects, dtype=np.int64) * self._stride + np.asarray(relations, dtype=np.int64)

    def _places(self, starts: Indices, ends: Indices, objects: Indices) -> Indices:
        """The first place in each range (B) whose object is not below the one asked for (B, k): (B, k).

        A binary search in all ranges at once: the objects of a query ascend.
        """
        low, high = (np.broadcast_to(of[:, None], objects.shape) for of in (starts, ends))
        while (unsettled := low < high).any():
            middle = (low + high) // 2
            before = self.objects[np.minimum(middle, len(self.objects) - 1)] < objects
            low = np.where(unsettled & before, middle + 1, low)
            high = np.where(unsettled & ~before, middle, high)
        return low


def split_names(places: NDArray[np.int8]) -> list[Split | None]:
    """The splits at these places of ``SPLITS`` (n); None for -1: no split states it."""
    return [None if place < 0 else SPLITS[place] for place in places.tolist()]


def relations_with_loops(graph: KnowledgeGraph) -> NDArray[np.bool_]:
    """Which relations have a fact of an entity with itself in some split, reciprocals included; (2R)."""
    found = np.zeros(graph.num_relations, dtype=bool)
    for split in SPLITS:
        facts = graph.split(split)
        found[facts[facts[:, 0] == facts[:, 2], 1]] = True
    return np.tile(found, 2)


def _sorted_distinct(keys: Indices, objects: Triples, splits: Indices) -> tuple[Indices, Indices, Indices]:
    """The distinct pairs (key, object) in ascending order, each with the lowest of its splits."""
    if len(keys) == 0:
        return keys, objects.astype(np.int64), splits
    base = int(objects.max()) + 1
    if int(keys.max()) * base + int(objects.max()) < 2 ** (63 - _SPLIT_BITS):
        # One number a fact sorts about ten times faster than three columns do.
        codes = (keys * base + objects << _SPLIT_BITS) + splits
        codes.sort()
        pairs = codes >> _SPLIT_BITS
        new = _differs_from_the_one_before(pairs)
        distinct = pairs[new]
        return distinct // base, distinct % base, codes[new] & (2**_SPLIT_BITS - 1)
    order = np.lexsort((splits, objects, keys))
    keys, wide = keys[order], objects[order].astype(np.int64)
    new = _differs_from_the_one_before(keys) | _differs_from_the_one_before(wide)
    return keys[new], wide[new], splits[order][new]


def _differs_from_the_one_before(values: Indices) -> NDArray[np.bool_]:
    """Of values from 0 on: the first of them has none before it and differs."""
    different: NDArray[np.bool_] = np.diff(values, prepend=-1) != 0
    return different
