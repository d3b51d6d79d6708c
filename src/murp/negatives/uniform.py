"""The paper's negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class Uniform(Negatives):
    """The tail is replaced with any entity, drawn uniformly; by chance the triple may be true, as in the paper."""

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        return Drawn(self.uniform((*positives.shape[:-1], self.negatives), positives.device, generator))
