"""Predict the relation as a second task."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from murp import registry
from murp.errors import ConfigError
from murp.models.model import Model, Rows
from murp.regularizers.regularizer import Batch, Weighted
from murp.settings import Span, again


class RelationPrediction(Weighted):
    """λ (log Σ_r' exp φ(s, r', o) - φ(s, r, o)), the mean over the batch's true triples.

    Cross-entropy of the true relation among all 2R, reciprocals included, beside the objective. It costs as many
    queries as there are true triples times relations, so it is for graphs with few relations.

    Chen, Minervini, Riedel, Stenetorp: Relation prediction as an auxiliary training objective for improving
    multi-relational graph representations, AKBC 2021.
    """

    reads_relations = True
    regularizer_weight: float = again(1.0, search=Span(0.05, 4, log=True))

    @classmethod
    def refuse(cls, config: Any) -> None:
        if registry.find("model", config.model).keeps_statistics:
            able = registry.models_that(lambda model: not model.keeps_statistics)
            raise ConfigError(
                f"regularizer relation-prediction has no meaning for {config.model}, which normalises a batch of "
                f"queries by its own statistics: wrong relations would be among them. Models that can: {able}.",
                "regularizer",
            )

    def term(self, model: Model, batch: Batch) -> Tensor:
        assert batch.relations is not None
        assert batch.asked is not None
        scores = _scores(model, batch, batch.relations)
        true = scores.gather(1, batch.of_fact(batch.asked)[:, None]).squeeze(1)
        missed = scores.logsumexp(1) - true
        return self.regularizer_weight * batch.mean(torch.zeros_like(batch.asked), missed)


def _scores(model: Model, batch: Batch, relations: Rows) -> Tensor:
    """φ(s, r', o) of each true triple with every relation: (B, 2R), or (L, 2R)."""
    facts, number = len(next(iter(batch.objects.values()))), model.num_relations
    subjects = {name: batch.of_fact(values).repeat_interleave(number, 0) for name, values in batch.subject.items()}
    every = {name: values.repeat(facts, *[1] * (values.dim() - 1)) for name, values in relations.items()}
    objects = {name: values.repeat_interleave(number, 0).unsqueeze(1) for name, values in batch.objects.items()}
    query = model.query(subjects, every, batch.shared)
    return model.meet(query, model.candidate(objects, batch.shared)).view(facts, number)
