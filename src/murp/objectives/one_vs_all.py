"""Every entity is a candidate for the object of a true triple."""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Candidate, Model, Query
from murp.objectives.every_score import EveryScore
from murp.objectives.objective import AllEntities, Labels
from murp.settings import Span, setting


class OneVsAll(AllEntities):
    """Each true triple (s, r, o) is a question (s, r, ?) whose one answer is o, among all N entities.

    With y_n = 1 for an answer and 0 for any other entity, m answers, and smoothing ε:

        cross-entropy   log Σ_n exp φ_n - Σ_n t_n φ_n          t_n = (1 - ε) y_n / m + ε / N
        bernoulli       1/N Σ_n [softplus(φ_n) - t_n φ_n]      t_n = (1 - ε) y_n + ε / N

    each the mean over the B questions of a batch.

    Lacroix, Usunier, Obozinski: Canonical tensor decomposition for knowledge base completion, ICML 2018
    (cross-entropy). Label smoothing: Szegedy et al., CVPR 2016; for graphs ConvE and TuckER.
    """

    label_loss: str = setting(
        "cross-entropy",
        "softmax over all entities (cross-entropy), or a binary loss for each entity (bernoulli)",
        choices=("cross-entropy", "bernoulli"),
    )
    label_smoothing: float = setting(
        0.0, "ε: share of the label that is spread evenly over all entities", least=0, below=1, search=Span(0, 0.3)
    )

    def loss(self, model: Model, query: Query, everything: Candidate, labels: Labels) -> Tensor:
        every = EveryScore(model, query, everything)
        true = labels.weight * self.label_scores(model, query, everything, labels)
        if self.label_loss == "bernoulli":
            value, of_true = every.softplus(), true.sum() / (every.questions * every.entities)
            smoothing = self.label_smoothing / every.entities
        else:
            value, of_true = every.log_sum_exp(), _mean_of_answers(true, labels, every.questions)
            smoothing = self.label_smoothing
        value = value - (1 - self.label_smoothing) * of_true
        return value - smoothing * every.mean() if smoothing else value


def _mean_of_answers(true: Tensor, labels: Labels, questions: int) -> Tensor:
    """The mean over questions of the mean over their answers, for weighted values (L)."""
    counts = true.new_zeros(questions).index_add_(0, labels.rows, labels.weight.to(true.dtype))
    return (true / counts.index_select(0, labels.rows)).sum() / questions
