"""Which split states a fact, for whole arrays of facts at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murp.evaluation import KnownFacts
from murp.evaluation.filter import Indices
from murp.graph import SPLITS, KnowledgeGraph


class Stated:
    """The facts of a graph by split, reciprocals included."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._splits = [KnownFacts(graph.with_reciprocals(graph.split(split)), graph.num_relations) for split in SPLITS]

    def split_of(self, subjects: Indices, relations: Indices, objects: Indices) -> NDArray[np.int8]:
        """The place in ``SPLITS`` of the first split that states (s, r, o), or -1; (B), (B), (B, k) → (B, k)."""
        found = np.full(objects.shape, -1, dtype=np.int8)
        for place in reversed(range(len(SPLITS))):
            found[states(self._splits[place], subjects, relations, objects)] = place
        return found


def loops(graph: KnowledgeGraph) -> NDArray[np.bool_]:
    """Which relations some split states of an entity with itself, reciprocals included; (2R)."""
    found = np.zeros(graph.num_relations, dtype=bool)
    for split in SPLITS:
        facts = graph.split(split)
        found[facts[facts[:, 0] == facts[:, 2], 1]] = True
    return np.tile(found, 2)


def states(known: KnownFacts, subjects: Indices, relations: Indices, objects: Indices) -> NDArray[np.bool_]:
    """Whether (s, r, o) is among the known facts; (B), (B), (B, k) → (B, k)."""
    if len(known.objects) == 0:
        return np.zeros(objects.shape, dtype=bool)
    starts, ends = known.ranges(subjects, relations)
    low, high = (np.broadcast_to(of[:, None], objects.shape) for of in (starts, ends))
    # A binary search in all ranges at once: the objects of a query ascend.
    while (unsettled := low < high).any():
        middle = (low + high) // 2
        before = known.objects[np.minimum(middle, len(known.objects) - 1)] < objects
        low = np.where(unsettled & before, middle + 1, low)
        high = np.where(unsettled & ~before, middle, high)
    there: NDArray[np.bool_] = known.objects[np.minimum(low, len(known.objects) - 1)] == objects
    return (low < ends[:, None]) & there
