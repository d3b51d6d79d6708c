"""Which triples a step sees: a pure function of seed, epoch and position, so that resuming is exact."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from murp.graph import Triples

STEPS_A_CHUNK = 256


class Sampler:
    """Positive triples in a new random order every epoch, each with k uniform false objects.

    Drawn in chunks of up to 256 steps. Nothing is remembered between chunks: the order depends on
    (seed, epoch) and the negatives on (seed, epoch, chunk) alone. A false object may by chance be a
    true one, as in the paper.
    """

    def __init__(
        self,
        triples: Triples,
        num_entities: int,
        *,
        batch_size: int,
        negatives: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self.triples = torch.from_numpy(triples).to(device)
        self.num_entities = num_entities
        self.batch_size = batch_size
        self.negatives = negatives
        self.seed = seed
        self.device = device
        self.order: tuple[int, Tensor] | None = None

    @property
    def steps(self) -> int:
        """Steps an epoch; the last batch may be smaller."""
        return math.ceil(len(self.triples) / self.batch_size)

    @property
    def chunks(self) -> int:
        """Chunks an epoch: the full batches by 256, then the smaller last batch where there is one."""
        full, rest = divmod(len(self.triples), self.batch_size)
        return math.ceil(full / STEPS_A_CHUNK) + (rest > 0)

    def chunk(self, epoch: int, index: int) -> tuple[Tensor, Tensor]:
        """Positives (S, B, 3) and negatives (S, B, k) of one chunk, int64 on the sampler's device."""
        if self.order is None or self.order[0] != epoch:
            self.order = (epoch, self._permutation(epoch))
        full = len(self.triples) // self.batch_size
        first = index * STEPS_A_CHUNK
        if first < full:
            steps, size = min(STEPS_A_CHUNK, full - first), self.batch_size
            start = first * self.batch_size
        else:
            steps, size = 1, len(self.triples) - full * self.batch_size
            start = full * self.batch_size
        chosen = self.order[1][start : start + steps * size]
        positives = self.triples[chosen].long().view(steps, size, 3)
        negatives = torch.randint(
            self.num_entities,
            (steps, size, self.negatives),
            generator=self._generator(epoch, 1 + index),
            device=self.device,
        )
        return positives, negatives

    def _permutation(self, epoch: int) -> Tensor:
        return torch.randperm(len(self.triples), generator=self._generator(epoch, 0), device=self.device)

    def _generator(self, *position: int) -> torch.Generator:
        state = np.random.SeedSequence([self.seed, *position]).generate_state(1, np.uint64)
        return torch.Generator(self.device).manual_seed(int(state[0] >> 1))
