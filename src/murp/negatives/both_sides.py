"""False triples with another subject and another object."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class BothSides(Negatives):
    """(s', r, o') with s' and o' any entities, each as likely: only the relation is kept.

    Chami, Wolf, Juan, Sala, Ravi, Ré: Low-dimensional hyperbolic knowledge graph embeddings, ACL 2020 (their code).
    Each false triple has a query of its own, which costs more than a false object does.
    """

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        shape = (2, *positives.shape[:-1], self.negatives)
        subjects, objects = self.uniform(shape, positives.device, generator)
        return Drawn(objects, subjects)
