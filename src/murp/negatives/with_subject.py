"""The subject among the negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class WithSubject(Negatives):
    """The first negative object is the subject itself, (s, r, s); the others are uniform over all entities.

    In a model of distances, the subject is the nearest entity to itself. This teaches the model that (s, r, s) is
    rarely true.
    """

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        drawn = self.uniform((*positives.shape[:-1], self.negatives - 1), positives.device, generator)
        return Drawn(torch.cat([positives[..., :1], drawn], -1))
