"""The nuclear 3-norm."""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Model
from murp.regularizers.regularizer import Batch, Weighted
from murp.settings import setting


class N3(Weighted):
    """λ (Σ_j |s_j|³ + Σ_j |r_j|³ + Σ_j |o_j|³), the mean over the batch's true triples.

    The factors are :meth:`Model.factors`: moduli if numbers are complex.

    Lacroix, Usunier, Obozinski: Canonical tensor decomposition for knowledge base completion, ICML 2018.
    """

    regularize_relations: bool = setting(True, "whether the relations' factors are included")

    def term(self, model: Model, batch: Batch) -> Tensor:
        subject, relation, objects = model.factors(batch.subject, batch.relation, batch.objects)
        of_question = _cubes(subject)
        for values in relation if self.regularize_relations else ():
            of_question = of_question + _cubes(values)
        return self.regularizer_weight * batch.mean(of_question, _cubes(objects))


def _cubes(moduli: Tensor) -> Tensor:
    """Σ x³ of each row (B, …)."""
    return moduli.pow(3).flatten(1).sum(1)
