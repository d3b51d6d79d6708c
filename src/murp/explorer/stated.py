"""The facts already known, with the split that states each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murp.graph import SPLITS, KnowledgeGraph, Split

Indices = NDArray[np.int64]


class StatedFacts:
    """Facts (s, r, o), r = 0 … 2R-1 with reciprocals, as sorted numbers (s·2R + r)·N + o: one look-up, no scan."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        self._stride = 2 * graph.num_relations
        self._entities = graph.num_entities
        splits = [graph.with_reciprocals(graph.split(split)).astype(np.int64) for split in SPLITS]
        codes = np.concatenate([self._codes(t[:, 0], t[:, 1], t[:, 2]) for t in splits])
        # unique gives the first occurrence, so a repeated fact belongs to the first split that states it.
        self._sorted, first = np.unique(codes, return_index=True)
        ends = np.cumsum([len(triples) for triples in splits])
        self._split = np.searchsorted(ends, first, side="right").astype(np.int8)

    def splits(self, subject: int, relation: int, objects: Indices) -> list[Split | None]:
        """For each object the split that states the fact, None where none does."""
        if len(self._sorted) == 0:
            return [None] * len(objects)
        wanted = self._codes(subject, relation, objects)
        position = np.minimum(np.searchsorted(self._sorted, wanted), len(self._sorted) - 1)
        known = self._sorted[position] == wanted
        return [
            SPLITS[split] if is_known else None
            for split, is_known in zip(self._split[position].tolist(), known.tolist(), strict=True)
        ]

    def objects(self, subject: int, relation: int) -> Indices:
        """Every stated object, ascending."""
        bounds = self._codes(subject, relation, np.array([0, self._entities]))
        begin, end = np.searchsorted(self._sorted, bounds)
        return self._sorted[begin:end] % self._entities

    def _codes(self, subjects: int | Indices, relations: int | Indices, objects: Indices) -> Indices:
        codes: Indices = (subjects * self._stride + relations) * self._entities + objects
        return codes
