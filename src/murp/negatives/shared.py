"""Negatives that a whole batch shares."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class Shared(Negatives):
    """k false tails, uniform over all entities, shared by all true triples of a batch.

    A batch needs k rows instead of B·k, and its scores are one matrix product, so many more negatives cost the same.
    """

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        return Drawn(self.uniform((*positives.shape[:-2], self.negatives), positives.device, generator))
