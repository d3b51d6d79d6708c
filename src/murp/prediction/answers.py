"""The most probable answers to (head, relation, ?) and (?, relation, tail); known facts are left out, or marked.

All commands that answer questions use this module: for one question, a file of questions, all questions of a relation,
and the explorer. Heads are predicted with the reciprocal relation, as in training and evaluation: a query is a subject
s and a relation 0 … 2R-1, and (?, r, t) is (t, r + R, ?).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from murp.errors import ConfigError, NotFiniteError
from murp.graph import Indices, KnowledgeGraph, KnownFacts, relations_with_loops, split_names
from murp.graph.types import Types
from murp.models import Model
from murp.prediction.approximate import Index
from murp.prediction.calibration import Calibration
from murp.prediction.candidates import places_among_new
from murp.prediction.search import Best, Scores, Search, not_finite, top_objects
from murp.rows import Rows
from murp.settings import whole_number
from murp.shapes import Prediction as Prediction

MANY = 2**20  # entities: among more, one question is answered by the loops that answer many


@dataclass(frozen=True, eq=False)
class Ranking(Best):
    """Answers, best first, to one question (k) or to Q questions (Q, k), and the split that has each fact: its index,
    or -1."""

    splits: NDArray[np.int8]

    @property
    def places(self) -> Indices:
        """The rank of each answer among new answers; for a known answer, the rank it would have."""
        return places_among_new(self.splits < 0)


class Answers:
    """Answers questions about a graph with a model.

    The entity of the question is not an answer, unless the relation has facts of an entity with itself. ``known``
    avoids preparing the facts again. Answers that ``types`` refuse are left out. ``ready`` keeps values that questions
    share, which helps with many single questions (:class:`murp.prediction.search.Scores`). With an ``index`` answers
    are approximate. ``search`` is for a model on many ranks (see :func:`top_objects`).
    """

    def __init__(
        self,
        model: Model,
        graph: KnowledgeGraph,
        known: KnownFacts | None = None,
        *,
        types: Types | None = None,
        ready: bool = False,
        index: Index | None = None,
        search: Search | None = None,
    ) -> None:
        self.model, self.graph, self.types, self.index, self.search = model, graph, types, index, search
        self.known = KnownFacts.of(graph) if known is None else known
        self.scores = Scores(model, ready=ready and model.num_entities <= MANY)
        self._without_loops = ~relations_with_loops(graph)
        self._is_without_loops: list[bool] = self._without_loops.tolist()

    def with_types(self, types: Types) -> Answers:
        """The same without answers that ``types`` refuse; prepared values are shared."""
        typed = copy.copy(self)
        typed.types = types
        return typed

    def may_answer_itself(self, relation: int) -> bool:
        """Whether the entity of the question may be an answer: the relation (0 … 2R-1) has facts of an entity with
        itself."""
        return not self._is_without_loops[relation]

    def best(
        self, subjects: Indices, relations: Indices, k: int, *, new_only: bool = False, memory: int | None = None
    ) -> Ranking:
        """The ``k`` best answers to each of many questions: (Q), (Q) → (Q, k); see :func:`top_objects`."""
        if self.index is not None:
            return self._one_by_one(subjects, relations, k, new_only=new_only)
        without = self.known if new_only else None
        apart = self._without_loops[relations]
        found = top_objects(
            self.model,
            subjects,
            relations,
            k,
            without=without,
            without_subject=apart,
            types=self.types,
            memory=memory,
            search=self.search,
        )
        if new_only:
            return Ranking(found.entities, found.scores, np.full(found.entities.shape, -1, np.int8))
        return Ranking(found.entities, found.scores, self.known.split_of(subjects, relations, found.entities))

    def to_one(self, subject: int, relation: int, k: int, *, new_only: bool = False) -> Ranking:
        """The ``k`` best answers to one question, or as many as there are: (k)."""
        apart = [subject] if self._is_without_loops[relation] else []
        left_out = np.array(apart, np.int32)
        if new_only:
            left_out = np.union1d(left_out, self.known.objects_of([subject], [relation])[1]).astype(np.int32)
        if self.types is not None:
            left_out = np.union1d(left_out, self.types.refused(subject, relation, new_only=new_only)).astype(np.int32)
        k = min(k, self.model.num_entities - len(left_out))
        if self.index is not None:
            entities, scores = self.index.best(self.model, subject, relation, k, left_out.astype(np.int64))
        elif (self.model.num_entities > MANY or self.search is not None) and k > 0:
            many = self.best(np.array([subject]), np.array([relation]), k, new_only=new_only)
            return Ranking(many.entities[0], many.scores[0], many.splits[0])
        else:
            entities, scores = self.scores.best(subject, relation, k, left_out)
        return Ranking(entities, scores, self.known.splits_of(subject, relation, entities))

    def _one_by_one(self, subjects: Indices, relations: Indices, k: int, *, new_only: bool) -> Ranking:
        """Many approximate answers; where fewer than k are left, entity -1 and score -∞."""
        k = min(k, self.model.num_entities)
        entities, scores = np.full((len(subjects), k), -1, np.int64), np.full((len(subjects), k), -np.inf)
        splits = np.full((len(subjects), k), -1, np.int8)
        for row, (subject, relation) in enumerate(zip(subjects.tolist(), relations.tolist(), strict=True)):
            found = self.to_one(subject, relation, k, new_only=new_only)
            there = slice(len(found.entities))
            entities[row, there], scores[row, there], splits[row, there] = found.entities, found.scores, found.splits
        return Ranking(entities, scores, splits)

    def among(self, subject: int, relation: int, candidates: Indices, k: int, *, new_only: bool = False) -> Ranking:
        """The ``k`` best of the entities ``candidates``, each once, or as many as there are; of equals the first.

        The entity of the question may be among the candidates. Answers that ``types`` refuse are still left out.
        """
        chosen = np.unique(candidates)
        if self.types is not None:
            chosen = np.setdiff1d(chosen, self.types.refused(subject, relation, new_only=new_only), assume_unique=True)
        scores = self.scores(subject, relation)[chosen]
        splits = self.known.splits_of(subject, relation, chosen)
        if not np.isfinite(scores).all():
            raise not_finite()
        kept = np.flatnonzero(splits < 0) if new_only else np.arange(len(chosen))
        order = kept[np.argsort(-scores[kept], kind="stable")[:k]]
        return Ranking(chosen[order], scores[order], splits[order])


def predict(
    model: Model,
    graph: KnowledgeGraph,
    *,
    relation: str,
    head: str | None = None,
    tail: str | None = None,
    k: int = 10,
    new_only: bool = False,
    types: Types | None = None,
    calibration: Calibration | None = None,
    index: Index | None = None,
    search: Search | None = None,
) -> Rows[Prediction]:
    """The ``k`` best-scored entities for the missing head or tail, best first; names or ids are looked up in the graph.

    ``new_only`` leaves out answers whose facts are in the graph. The given entity itself is always left out, unless the
    relation has facts of an entity with itself. ``types`` leaves out answers that the types refuse. With an ``index``
    (:mod:`murp.prediction.approximate`) some of the best may be missing. ``search`` is for a model on many ranks (see
    :func:`top_objects`).
    """
    if head is None and tail is None:
        raise ConfigError("give a head or a tail: the other one is what is predicted.")
    if head is not None and tail is not None:
        raise ConfigError("give either a head or a tail, not both: the other one is what is predicted.")
    k = whole_number("k", k)
    r = graph.relations.find(identifier("relation", relation))
    given = graph.entities.find(identifier("tail", tail) if head is None else identifier("head", head))
    row = r if head is not None else r + graph.num_relations
    known = KnownFacts.of_question(graph, given, row)
    answers = Answers(model, graph, known, types=types, index=index, search=search)
    try:
        found = answers.to_one(given, row, k, new_only=new_only)
    except NotFiniteError:
        raise NotFiniteError(
            f"the model gives NaN or infinite scores to ({graph.entities.label(given)}, {relation}). It diverged: "
            "train again with a lower learning rate, or use another checkpoint."
        ) from None
    calibrated: list[float | None] = [None] * len(found.entities)
    if calibration is not None:
        calibrated = calibration.probability(found.scores, found.places).tolist()
    columns = zip(found.entities.tolist(), found.scores.tolist(), split_names(found.splits), calibrated, strict=True)
    predictions = (
        Prediction(
            rank=rank,
            id=graph.entities.id(entity),
            name=graph.entities.name(entity),
            score=score,
            probability=float(torch.sigmoid(torch.tensor(score, dtype=torch.float64))),
            known=split,
            calibrated=probability,
        )
        for rank, (entity, score, split, probability) in enumerate(columns, start=1)
    )
    return Rows(Prediction, predictions)


def identifier(name: str, value: Any) -> str:
    """An id or a name, as a text even if it looks like a number; anything else is an error."""
    if not isinstance(value, str):
        raise ConfigError(f"{name} must be an id or a name, which is a text, not {value!r}.")
    return value
