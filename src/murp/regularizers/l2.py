"""Short vectors."""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Model
from murp.regularizers.regularizer import Batch, Weighted
from murp.settings import setting


class L2(Weighted):
    """λ (|s|² + |o|²), optionally with |r|²: the mean over the batch's true triples.

    |s| is the length of the entity's vector, in a curved space the length of log₀(s); |r|² is the sum over a relation's
    vectors and matrices. Only rows of the batch are regularized, so an entity counts as often as it occurs.
    """

    regularize_relations: bool = setting(False, "whether the relations' parameters are included")

    def term(self, model: Model, batch: Batch) -> Tensor:
        of_question = model.vector(batch.subject).square().sum(-1)
        if self.regularize_relations:
            for values in batch.relation.values():
                if values.dim() > 1:
                    of_question = of_question + values.square().flatten(1).sum(1)
        of_object = model.vector(batch.objects).square().sum(-1)
        return self.regularizer_weight * batch.mean(of_question, of_object)
