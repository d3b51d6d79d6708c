"""The interface of an objective: a loss over the scores of true and false triples.

Either negatives are drawn (:class:`Sampled`), or every entity is a candidate (:class:`AllEntities`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from murp import registry
from murp.errors import ConfigError
from murp.models.model import Candidate, Model, Query
from murp.settings import Part


class Objective(Part):
    """A loss, the mean over a batch.

    ``usual`` has default settings of a run that suit the objective; see :func:`murp.recipes.completed`. The learning
    rate of SGD depends on the size of the gradients, so each objective has its own (here for the optimizer SGD; others
    have their own default). The default of SGD itself, 50, is the paper's, for :class:`Bernoulli`.
    """

    sampled: ClassVar[bool]
    usual: ClassVar[Mapping[str, Any]] = {"lr": 1.0}
    grouped: ClassVar[bool] = False  # whether a batch is made of questions (s, r) with all their answers

    def prepare(self, triples: Tensor, num_entities: int) -> None:
        """See the training triples (n, 3) before the first step."""


class Sampled(Objective):
    """A loss over each true triple and its negatives."""

    sampled = True

    @abstractmethod
    def loss(self, scores: Tensor) -> Tensor:
        """The mean loss of ``scores`` (B, 1 + k): the true triple first, then the false ones."""


@dataclass
class Labels:
    """The true answers of B questions: ``rows`` (L) and ``objects`` (L), each pair once; ``weight`` (L), 1 or 0.

    A pair of weight 0 does not count: it pads batches to one shape. ``single``: each question has one answer, L = B.
    ``answers`` are these objects and their candidates (L, …) where rows were read for them alone; None: look them up
    among all candidates. Their gradient is then that of L rows, not one as large as the table.
    """

    rows: Tensor
    objects: Tensor
    weight: Tensor
    single: bool = False
    answers: tuple[Tensor, Candidate] | None = None

    def of_answer(self, of_question: Tensor) -> Tensor:
        """For each answer the value (B, …) of its question."""
        return of_question if self.single else of_question.index_select(0, self.rows)

    def sums(self, values: Tensor, questions: int) -> Tensor:
        """Sums over the answers of each question: values (L) → (B)."""
        return values if self.single else values.new_zeros(questions).index_add_(0, self.rows, values)


class AllEntities(Objective):
    """A loss over the scores of all entities, without a tensor of batch × entities."""

    sampled = False

    @classmethod
    def refuse(cls, config: Any) -> None:
        if config.corruption != type(config).corruption:
            raise ConfigError(
                f"objective {config.objective} draws no false triples, since every entity is a candidate: leave out "
                f"corruption = {config.corruption}, or choose an objective that draws some: "
                f"{registry.objectives_that_draw()}.",
                "corruption",
            )

    @abstractmethod
    def loss(self, model: Model, query: Query, everything: Candidate, labels: Labels) -> Tensor:
        """The mean loss of B questions against the candidates ``everything`` (N, …)."""

    @staticmethod
    def label_scores(model: Model, query: Query, everything: Candidate, labels: Labels) -> Tensor:
        """φ (L) of the true answers."""
        asked = Query(
            tuple(labels.of_answer(vector) for vector in query.vectors),
            {name: labels.of_answer(values) for name, values in query.numbers.items()},
        )
        if labels.answers is not None and labels.answers[0] is labels.objects:
            answers = labels.answers[1]
        else:
            answers = Candidate(
                tuple(vector.index_select(0, labels.objects) for vector in everything.vectors),
                {name: values.index_select(0, labels.objects) for name, values in everything.numbers.items()},
            )
        apart = Candidate(
            tuple(vector.unsqueeze(1) for vector in answers.vectors),
            {name: values.unsqueeze(1) for name, values in answers.numbers.items()},
        )
        return model.meet(asked, apart).squeeze(1)


def one_label(objects: Tensor) -> Labels:
    """The labels of B questions with one answer (B) each."""
    rows = torch.arange(len(objects), device=objects.device)
    return Labels(rows, objects, torch.ones(len(objects), device=objects.device), single=True)
