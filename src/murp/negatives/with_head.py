"""The head among the negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class WithHead(Negatives):
    """The first negative tail is the head itself, (h, r, h); the others are uniform over all entities.

    In a model of distances, the head is the nearest entity to itself. This teaches the model that (h, r, h) is rarely
    true.
    """

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        drawn = self.uniform((*positives.shape[:-1], self.negatives - 1), positives.device, generator)
        return Drawn(torch.cat([positives[..., :1], drawn], -1))
