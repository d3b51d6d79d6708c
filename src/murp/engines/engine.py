"""What every engine offers: training steps over chunks of an epoch, updating a model's tables in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from murp.objectives import Labels

WHOLE = slice(None)


@dataclass(frozen=True)
class Chunk:
    """Consecutive steps of one epoch: ``positives`` (S, B, 3), int64, and what their negatives are drawn from.

    An engine may draw the negatives itself, from ``seed``, or take those of :meth:`draw`.

    One of many ranks has a part of each batch alone: ``positives`` (S, b, 3) are then the triples ``first`` …
    ``first`` + b - 1 of batches of ``whole`` triples.
    """

    positives: Tensor
    num_entities: int
    negatives: int
    seed: int
    labels: Labels | None = None  # (S, L): of questions that are asked with all their answers
    whole: int | None = None
    first: int = 0

    @property
    def steps(self) -> int:
        return self.positives.shape[0]

    @property
    def batch(self) -> int:
        """B, the triples of a whole batch."""
        return self.positives.shape[1] if self.whole is None else self.whole

    @property
    def triples(self) -> int:
        """Of all ranks together."""
        return self.steps * self.batch

    def padded(self, positives: Tensor) -> Tensor:
        """Some steps of ``positives`` as whole batches (S, B, 3); triples of other ranks are 0."""
        if self.whole is None:
            return positives
        found = positives.new_zeros(len(positives), self.whole, 3)
        found[:, self.first : self.first + positives.shape[1]] = positives
        return found

    def draw(self, part: slice = WHOLE, choices: int | None = None) -> Tensor:
        """False objects (S, B, k), int64, uniform over all entities; a pure function of ``seed``.

        Of each batch those of the triples in ``part`` alone: the same ones, and cheaper than all. With ``choices``,
        uniform numbers below it instead.
        """
        choices = self.num_entities if choices is None else choices
        device = self.positives.device
        steps, batch = self.steps, self.batch
        if part != WHOLE and device.type == "cpu":
            from murp.kernels import numba_mersenne_twister  # what engines that draw all need not wait for

            if choices < numba_mersenne_twister.MOST and numba_mersenne_twister.agrees():
                return numba_mersenne_twister.randint(choices, (steps, batch, self.negatives), part, self.seed)
        generator = torch.Generator(device).manual_seed(self.seed)
        shape = (steps, batch, self.negatives)
        return torch.randint(choices, shape, generator=generator, device=device)[:, part]


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
