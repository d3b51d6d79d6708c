"""The facts already known, looked up for whole batches of queries at once.

A ranking is *filtered*: other right answers to the same question do not count against the model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murp.graph import KnowledgeGraph, Triples

Indices = NDArray[np.int64]


class KnownFacts:
    """The objects of every (subject, relation), relations 0 … 2R-1 with reciprocals.

    A fact (s, r, o) lies under the key s·2R + r. ``keys`` (K) holds the distinct keys in ascending order,
    ``objects`` (F) the objects of the distinct facts in the order of their keys and ascending within a key,
    and those of ``keys[k]`` are ``objects[offsets[k]:offsets[k + 1]]``. Repeated facts count once.
    """

    def __init__(self, facts: Triples, num_relations: int) -> None:
        """``facts``: shape (F', 3), reciprocals included; ``num_relations``: R, without reciprocals."""
        self._stride = 2 * num_relations
        keys, objects = _sorted_distinct(self._keys(facts[:, 0], facts[:, 1]), facts[:, 2])
        starts = np.flatnonzero(_differs_from_the_one_before(keys))
        self.keys: Indices = keys[starts]
        self.offsets: Indices = np.append(starts, len(keys))
        self.objects: NDArray[np.int32] = objects.astype(np.int32)

    @classmethod
    def of(cls, graph: KnowledgeGraph) -> KnownFacts:
        """Every fact of train, valid and test, and its reciprocal."""
        return cls(graph.with_reciprocals(graph.facts()), graph.num_relations)

    def objects_of(self, subjects: ArrayLike, relations: ArrayLike) -> tuple[Indices, Indices]:
        """Every known object of each of B queries, flat: query ``rows[i]`` has the object ``objects[i]``.

        Rows ascend, and so do the objects of a row; a query nothing is known of has none.
        """
        starts, ends = self.ranges(subjects, relations)
        counts = ends - starts
        rows = np.repeat(np.arange(len(counts)), counts)
        skipped = starts - (np.cumsum(counts) - counts)
        positions = np.arange(len(rows)) + np.repeat(skipped, counts)
        return rows, self.objects[positions].astype(np.int64)

    def _keys(self, subjects: ArrayLike, relations: ArrayLike) -> Indices:
        return np.asarray(subjects, dtype=np.int64) * self._stride + np.asarray(relations, dtype=np.int64)

    def ranges(self, subjects: ArrayLike, relations: ArrayLike) -> tuple[Indices, Indices]:
        """Where in ``objects`` those of each query begin and end; an empty range for an unknown key."""
        wanted = self._keys(subjects, relations)
        position = np.searchsorted(self.keys, wanted)
        found = position < len(self.keys)
        found[found] = self.keys[position[found]] == wanted[found]
        return (
            np.where(found, self.offsets[position], 0),
            np.where(found, self.offsets[np.minimum(position + 1, len(self.keys))], 0),
        )


def _sorted_distinct(keys: Indices, objects: Triples) -> tuple[Indices, Indices]:
    """The distinct pairs (key, object) in ascending order."""
    if len(keys) == 0:
        return keys, objects.astype(np.int64)
    base = int(objects.max()) + 1
    if int(keys.max()) * base + int(objects.max()) <= np.iinfo(np.int64).max:
        # One number a pair sorts about ten times faster than two columns do.
        pairs = keys * base + objects
        pairs.sort()
        distinct = pairs[_differs_from_the_one_before(pairs)]
        return distinct // base, distinct % base
    order = np.lexsort((objects, keys))
    keys, wide = keys[order], objects[order].astype(np.int64)
    new = _differs_from_the_one_before(keys) | _differs_from_the_one_before(wide)
    return keys[new], wide[new]


def _differs_from_the_one_before(values: Indices) -> NDArray[np.bool_]:
    """Of values from 0 on: the first of them has none before it and differs."""
    different: NDArray[np.bool_] = np.diff(values, prepend=-1) != 0
    return different
