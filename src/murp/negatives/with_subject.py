"""The subject among the negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class WithSubject(Negatives):
    """The first false object is the subject itself, (s, r, s); the others are any entity, each as likely.

    A model of distances finds a subject nearest to itself. Where entities rarely stand in a relation to themselves this
    teaches it so.
    """

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        drawn = self.uniform((*positives.shape[:-1], self.negatives - 1), positives.device, generator)
        return Drawn(torch.cat([positives[..., :1], drawn], -1))
