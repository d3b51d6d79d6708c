"""Every entity is a candidate for the object of a true triple."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.models.model import Candidate, Model, Query
from murp.objectives.every_score import EveryScore
from murp.objectives.objective import AllEntities, Labels
from murp.settings import Span, setting


class OneVsAll(AllEntities):
    """Each true triple (s, r, o) is a question (s, r, ?) whose one answer is o, among all N entities.

    With y_n = 1 for an answer and 0 for any other entity, m answers, and smoothing ε:

        cross-entropy   log Σ_n exp φ_n - Σ_n t_n φ_n          t_n = (1 - ε) y_n / m + ε / N
        bernoulli       1/N Σ_n [softplus(φ_n) - t_n φ_n]      t_n = (1 - ε) y_n + ε / N

    each the mean over the B questions of a batch. With κ > 0 (``answer_weight``) it is a weighted mean: a question has
    the weight 1 + κ n(o) / max n, where n(o) counts the training triples whose answer is o; of several answers the mean
    counts. So hubs, the answers to many questions, are learned better.

    Lacroix, Usunier, Obozinski: Canonical tensor decomposition for knowledge base completion, ICML 2018
    (cross-entropy). Label smoothing: Szegedy et al., CVPR 2016; for graphs ConvE and TuckER. Weights: the code of
    Zhang, Cai, Wang: Duality-induced regularizer, NeurIPS 2020, has κ = 9 for WN18RR.
    """

    label_loss: str = setting(
        "cross-entropy",
        "softmax over all entities (cross-entropy), or a binary loss for each entity (bernoulli)",
        choices=("cross-entropy", "bernoulli"),
    )
    label_smoothing: float = setting(
        0.0, "ε: share of the label that is spread evenly over all entities", least=0, below=1, search=Span(0, 0.3)
    )
    answer_weight: float = setting(
        0.0,
        "κ: the weight of a question is 1 + κ times its answer's share of the most frequent answer's facts",
        least=0,
    )
    weights: Tensor | None = None  # of questions by their answer (N); None: all have the same

    @classmethod
    def refuse(cls, config: Any) -> None:
        super().refuse(config)
        if config.answer_weight and (config.label_loss != "cross-entropy" or config.label_smoothing):
            raise ConfigError(
                f"answer_weight = {config.answer_weight:g} weighs the questions of a cross-entropy without smoothing: "
                "set label_loss to cross-entropy and label_smoothing to 0, or leave answer_weight at 0.",
                "answer_weight",
            )

    def prepare(self, triples: Tensor, num_entities: int) -> None:
        if self.answer_weight:
            counts = torch.bincount(triples[:, 2].long(), minlength=num_entities)
            self.weights = 1 + self.answer_weight * counts / counts.max()

    def favour(self, factors: Tensor) -> None:
        """Multiply each question's weight by its answer's factor (N); only in a cross-entropy without smoothing."""
        if self.label_loss == "cross-entropy" and not self.label_smoothing:
            self.weights = factors if self.weights is None else self.weights * factors

    def loss(self, model: Model, query: Query, everything: Candidate, labels: Labels) -> Tensor:
        every = EveryScore(model, query, everything)
        true = self.label_scores(model, query, everything, labels)
        true = true if labels.single else labels.weight * true
        if self.label_loss == "bernoulli":
            value, of_true = every.softplus(), true.sum() / (every.questions * every.entities)
            smoothing = self.label_smoothing / every.entities
        else:
            shares = self._shares(labels, every.questions, true.dtype)
            value, of_true = every.log_sum_exp(shares), _mean_of_answers(true, labels, every.questions, shares)
            smoothing = self.label_smoothing
        value = value - (1 - self.label_smoothing) * of_true
        return value - smoothing * every.mean() if smoothing else value

    def _shares(self, labels: Labels, questions: int, dtype: torch.dtype) -> Tensor | None:
        """Each question's share (B) of the weights of a batch; None if all are equal."""
        if self.weights is None:
            return None
        weights = (labels.weight * self.weights.index_select(0, labels.objects)).to(dtype)
        found = labels.sums(weights, questions) / labels.sums(labels.weight.to(dtype), questions)
        return found / found.sum()


def _mean_of_answers(true: Tensor, labels: Labels, questions: int, shares: Tensor | None) -> Tensor:
    """The mean over questions, weighted by ``shares``, of the mean over their answers, for weighted values (L)."""
    of_answers = true
    if not labels.single:
        of_answers = true / labels.of_answer(labels.sums(labels.weight.to(true.dtype), questions))
    return of_answers.sum() / questions if shares is None else (of_answers * labels.of_answer(shares)).sum()
