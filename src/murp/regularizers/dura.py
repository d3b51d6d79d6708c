"""The regularizer of dual models."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from murp import registry
from murp.errors import ConfigError
from murp.models.model import Model, squared_norm
from murp.regularizers.regularizer import Batch, Regularizer, Weighted
from murp.settings import Part, setting


def _takes_any(regularizer: type[Regularizer]) -> bool:
    return issubclass(regularizer, Weighted) and regularizer.refuse.__func__ is Part.refuse.__func__  # type: ignore[attr-defined]


class DURA(Weighted):
    """λ (ρ(|s|² + |o|²) + (|s R|² + |o Rᵀ|²) / ρ), the mean over the batch's true triples; ρ = 1 as published.

    s R is the query, and o Rᵀ is the object transformed by the transposed relation (:meth:`Model.converse`). So the
    four vectors of the score ⟨s R, o⟩ = ⟨s, o Rᵀ⟩ are kept short. It is for models whose score is such a product. ρ
    sets the weight of the entities against that of the transformed entities.

    Zhang, Cai, Wang: Duality-induced regularizer for tensor factorization based knowledge graph completion,
    NeurIPS 2020.
    """

    dura_balance: float = setting(1.0, "ρ: norms of entities have weight ρ, norms of transformed entities 1/ρ", above=0)

    @classmethod
    def refuse(cls, config: Any) -> None:
        model = registry.find("model", config.model)
        if model.converse is Model.converse:
            able = registry.models_that(lambda other: other.converse is not Model.converse)
            every = [name for name in registry.REGULARIZERS if _takes_any(registry.find("regularizer", name))]
            raise ConfigError(
                f"regularizer dura needs a model whose score is a product with the transposed relation; {config.model} "
                f"is not such a model. Use one of {able}, or a regularizer for any model: {', '.join(every)}. (A model "
                "of your own has such a score if it defines the method converse.)",
                "regularizer",
            )

    def term(self, model: Model, batch: Batch) -> Tensor:
        rho = self.dura_balance
        of_question = rho * squared_norm(model.vector(batch.subject))
        for vector in batch.query.vectors:
            of_question = of_question + squared_norm(vector) / rho
        converse = model.converse(batch.objects, batch.relation_of_fact())
        of_object = rho * squared_norm(model.vector(batch.objects)) + squared_norm(converse) / rho
        return self.regularizer_weight * batch.mean(of_question, of_object)
