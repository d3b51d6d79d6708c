"""φ(s, r, ·) for one question after another."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from murp.models import MultiRelational, Rows
from murp.models.model import squared_norm

KEPT = 256 * 2**20  # bytes of products held ready


class Scores:
    """The scores of :meth:`Model.score_objects`, three times as fast for single questions of the published model.

    |v|² of every object v is computed once, ⟨v, r⟩ once a relation; what is left of a question is one product
    of the moved subject with all objects. Other choices of parts are scored by the model itself.
    """

    def __init__(self, model: MultiRelational) -> None:
        self._model = model
        parts = model.transformation
        self._by_products = parts.translate_object and not parts.stretch_object and model.bias in ("both", "object")
        self._entities = model.parameters["entity"]
        # A row times this is twice as fast as the rows times a column.
        self._columns = self._entities.T.contiguous()
        self._squares = squared_norm(self._entities)
        size = self._squares.numel() * self._squares.element_size()
        self._with_relation = lru_cache(maxsize=max(8, KEPT // size))(self._relation_products)

    @torch.no_grad()
    def __call__(self, subject: int, relation: int) -> Tensor:
        """Indices s and r, reciprocals included → scores (N,) in float64."""
        model = self._model
        if not self._by_products:
            return model.score_objects(torch.tensor([subject]), torch.tensor([relation]))[0].double()
        rows, with_relation = self._with_relation(relation)
        r = rows["translation"]
        x = model.move_subject(self._entities[subject : subject + 1], rows)
        squared = model.geometry.squared_distance_to_sum_from_products(
            squared_norm(x), self._squares, squared_norm(r), (x @ self._columns)[0], (x * r).sum(-1), with_relation
        )
        scores = model.parameters["object_bias"] - squared
        if "subject_bias" in model.parameters:
            scores = scores + model.parameters["subject_bias"][subject]
        return scores.double()

    def _relation_products(self, relation: int) -> tuple[Rows, Tensor]:
        """The relation's rows (1, …) and ⟨v, r⟩ of every object (N,)."""
        rows = self._model.rows("relation", torch.tensor([relation]))
        return rows, (rows["translation"] @ self._columns)[0]
