"""The candidates of protocol ``sampled``: how they are drawn, and a digest of them.

The candidates of a question are a function of the seed, the question, its answer, their number and the graph
(:mod:`murp.kernels.numba_candidates`), computed with integers, so they can always be drawn again. With another graph
they are others. The digest is made of ids: it shows whether two evaluations had the same questions and candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.evaluation.ranks import queries_of
from murp.graph import Indices, KnowledgeGraph, KnownFacts, Triples, Vocabulary
from murp.graph.names.vocabulary import text_buffers

Drawn = NDArray[np.int32]
Part = tuple[Indices, Drawn]
"""Which questions (B), and the candidates (B, n) of each; -1 where fewer are left."""
Keys = NDArray[np.uint64]


class Questions:
    """The questions (Q) of the facts of a split, for tails, then for heads, and their known answers."""

    def __init__(self, graph: KnowledgeGraph, triples: Triples, known: KnownFacts) -> None:
        self.graph, self.known = graph, known
        self.subjects, self.relations, self.targets = queries_of(triples, graph.num_relations)

    def __len__(self) -> int:
        return len(self.subjects)

    @cached_property
    def keys(self) -> Keys:
        """One (Q) for each; a fact that the split has twice has equal ones."""
        return keys_of(self.subjects, self.relations, self.targets)

    def taken(self, which: Indices) -> tuple[Indices, Indices]:
        """Rows and entities, row by row and ascending: what is no candidate of the questions ``which`` (B)."""
        entities, targets = self.graph.num_entities, self.targets[which]
        rows, objects = self.known.objects_of(self.subjects[which], self.relations[which])
        cells = np.concatenate([rows, np.arange(len(which))]) * entities + np.concatenate([objects, targets])
        row, entity = np.divmod(np.unique(cells), entities)  # the answer too, where it is no known fact
        return row, entity


def keys_of(subjects: NDArray[Any], relations: NDArray[Any], targets: NDArray[Any]) -> Keys:
    """One (Q) for each question."""
    return _seeded(0, subjects, relations, targets)


def _seeded(seed: int, subjects: NDArray[Any], relations: NDArray[Any], targets: NDArray[Any]) -> Keys:
    from murp.kernels.numba_candidates import question_keys

    keys = np.empty(len(subjects), np.uint64)
    question_keys(np.uint64(seed), subjects, relations, targets, keys)
    return keys


def candidates_of(questions: Questions, which: Indices, candidates: int, seed: int) -> Drawn:
    """The candidates (B, n) of the questions ``which`` (B), drawn by a seed."""
    from murp.kernels.numba_candidates import draw

    entities = questions.graph.num_entities
    row, entity = questions.taken(which)
    starts = np.searchsorted(row, np.arange(len(which) + 1))
    keys = _seeded(seed, questions.subjects[which], questions.relations[which], questions.targets[which])
    drawn: Drawn = draw(keys, starts, entity, entities, min(candidates, entities))
    return drawn


def drawn(questions: Questions, candidates: int, seed: int, size: int) -> Iterator[Part]:
    """The candidates of all questions, ``size`` questions at a time."""
    for start in range(0, len(questions), size):
        which = np.arange(start, min(start + size, len(questions)))
        yield which, candidates_of(questions, which, candidates, seed)


class Digest:
    """A number of 64 bits of the questions and their candidates that were added, by id; their order does not matter."""

    def __init__(self, questions: Questions) -> None:
        self.entities, relations = _text_keys(questions.graph.entities), _text_keys(questions.graph.relations)
        subjects, targets = (self.entities[of] for of in (questions.subjects, questions.targets))
        self.questions = keys_of(subjects, np.concatenate([relations, ~relations])[questions.relations], targets)
        self.sum = 0

    def add(self, which: Indices, drawn: Drawn) -> None:
        from murp.kernels.numba_candidates import digest

        self.sum = (self.sum + int(digest(self.questions[which], self.entities, drawn))) % 2**64

    def __str__(self) -> str:
        return f"{self.sum:016x}"


def _text_keys(vocabulary: Vocabulary) -> Keys:
    from murp.kernels.numba_candidates import text_keys

    keys: Keys = text_keys(*text_buffers(vocabulary.ids))
    return keys
