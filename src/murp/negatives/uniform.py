"""The paper's negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives

WHOLE = slice(None)


class Uniform(Negatives):
    """The tail is replaced with any entity, drawn uniformly; by chance the triple may be true, as in the paper."""

    @property
    def most(self) -> int:
        """The negatives are made of uniform numbers below ``most``."""
        return self.num_entities

    def entities(self, numbers: Tensor, batch: int, part: slice) -> Tensor:
        """The entities (…, b, k) that such ``numbers`` (…, b, k) stand for; ``part``: which of ``batch`` triples have
        them."""
        return numbers

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        batch = positives.shape[-2]
        shape = (*positives.shape[:-1], self.negatives)
        numbers = torch.randint(self.most, shape, generator=generator, device=positives.device)
        return Drawn(self.entities(numbers, batch, WHOLE))
