"""The paper's negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class Uniform(Negatives):
    """The tail is replaced with any entity, drawn uniformly; by chance the triple may be true, as in the paper."""

    @property
    def choices(self) -> int:
        """The negatives are made of uniform numbers 0 … ``choices`` - 1."""
        return self.num_entities

    def entities(self, numbers: Tensor, batch: int, part: slice) -> Tensor:
        """The entities (…, b, k) that such ``numbers`` (…, b, k) stand for; ``part``: which of ``batch`` triples have
        them."""
        return numbers

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        batch = positives.shape[-2]
        shape = (*positives.shape[:-1], self.negatives)
        numbers = torch.randint(self.choices, shape, generator=generator, device=positives.device)
        return Drawn(self.entities(numbers, batch, slice(None)))
