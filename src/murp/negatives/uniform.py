"""The paper's negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class Uniform(Negatives):
    """The object replaced by any entity, each as likely; by chance that may be a true one, as in the paper."""

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        return Drawn(self.uniform((*positives.shape[:-1], self.negatives), positives.device, generator))
