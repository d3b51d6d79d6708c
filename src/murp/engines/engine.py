"""What every engine offers: training steps over chunks of an epoch, updating a model's tables in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from murp.objectives import Labels


@dataclass(frozen=True)
class Chunk:
    """Consecutive steps of one epoch: ``positives`` (S, B, 3), int64, and what their negatives are drawn from.

    An engine may draw the negatives itself, from ``seed``, or take those of :meth:`draw`.
    """

    positives: Tensor
    num_entities: int
    negatives: int
    seed: int
    labels: Labels | None = None  # (S, L): of questions that are asked with all their answers

    @property
    def steps(self) -> int:
        return self.positives.shape[0]

    @property
    def triples(self) -> int:
        return self.positives.shape[0] * self.positives.shape[1]

    def draw(self) -> Tensor:
        """False objects (S, B, k), int64, uniform over all entities; a pure function of ``seed``."""
        device = self.positives.device
        generator = torch.Generator(device).manual_seed(self.seed)
        shape = (*self.positives.shape[:2], self.negatives)
        return torch.randint(self.num_entities, shape, generator=generator, device=device)


class Engine(Protocol):
    """Runs training steps; how the gradient is computed is the engine's own affair."""

    name: str

    @property
    def states(self) -> list[dict[str, Tensor]]:
        """The optimizer's tables of each model, beside the parameters what a checkpoint keeps; they are its own."""
        ...

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """Each model its chunk, with its learning rate, step after step; the sums of the mean losses, one a model."""
        ...
