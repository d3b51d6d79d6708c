"""The interface of a regularizer: a term that is added to the loss of a batch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

from torch import Tensor

from murp.kernels.matrices import RowsAt
from murp.models.model import Model, Query, Rows
from murp.objectives.objective import Labels
from murp.settings import Part, Span, setting


@dataclass
class Batch:
    """The true triples of a step: rows (B, …) of subjects, relations and objects, and the query.

    If a step has B questions with all their answers, ``objects`` are the L answers, and ``labels`` say to which
    question each belongs.
    """

    subject: Rows
    relation: Rows
    objects: Rows
    shared: Rows
    query: Query
    labels: Labels | None = None
    relations: Rows | None = None  # of all relations, for a regularizer that reads them
    asked: Tensor | None = None  # (B): which relations the questions have

    def mean(self, of_question: Tensor, of_object: Tensor) -> Tensor:
        """The mean over the true triples of a value (B) of their questions plus one (B), or (L), of their objects."""
        if self.labels is None:
            return (of_question + of_object).mean()
        weight = self.labels.weight
        return (weight * (self.of_fact(of_question) + of_object)).sum() / weight.sum()

    def of_fact(self, of_question: Tensor) -> Tensor:
        """For each true triple the value (B, …) of its question."""
        return of_question if self.labels is None else self.labels.of_answer(of_question)

    def relation_of_fact(self) -> Rows:
        """For each true triple the rows of its relation."""
        if self.labels is not None and isinstance(self.relation, RowsAt):
            return cast(Rows, self.relation.at(self.labels.rows))
        return self.relation if self.labels is None else {n: self.of_fact(rows) for n, rows in self.relation.items()}


class Regularizer(Part):
    """A term that depends on the rows of a batch."""

    reads_rows: ClassVar[bool] = True  # whether it has a term at all
    reads_relations: ClassVar[bool] = False  # whether it reads the rows of all relations

    @abstractmethod
    def term(self, model: Model, batch: Batch) -> Tensor | None:
        """The mean over the batch, its weight included; None: nothing is added."""


class Weighted(Regularizer):
    """λ times the mean of something over the true triples of a batch."""

    regularizer_weight: float = setting(
        0.01, "λ: how much the regularizer counts beside the loss", above=0, search=Span(1e-4, 0.3, log=True)
    )
