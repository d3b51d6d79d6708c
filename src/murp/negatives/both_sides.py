"""Negatives with another head and another tail."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class BothSides(Negatives):
    """(s', r, o') with s' and o' uniform over all entities: only the relation is kept.

    Chami, Wolf, Juan, Sala, Ravi, Ré: Low-dimensional hyperbolic knowledge graph embeddings, ACL 2020 (their code).
    Each negative has its own query, which costs more than replacing only the tail.
    """

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        shape = (2, *positives.shape[:-1], self.negatives)
        subjects, objects = self.uniform(shape, positives.device, generator)
        return Drawn(objects, subjects)
