"""Evaluation on many ranks: each process scores its own candidates, and the counts are added.

A score depends only on its query and its candidate, bit for bit (see :mod:`murp.models.blocks`). So the result is the
same as in one process with the same arithmetic.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from murp.distributed.own_rows import OwnRows
from murp.distributed.ranks import Ranks
from murp.evaluation.ranks import Protocol, batch_size, count, removed_cells
from murp.evaluation.sampled import better_or_half, scores_among
from murp.graph import Indices, KnownFacts
from murp.models.model import Model


class Counting(OwnRows):
    """Counts better and equal entities of queries, for :func:`murp.evaluation.ranks.rank`.

    ``memory`` limits the bytes of the scores on this rank; the default is the same as for one process.
    """

    def __init__(self, ranks: Ranks, model: Model, memory: int | None = None) -> None:
        super().__init__(ranks, model)
        self.memory = memory

    @torch.no_grad()
    def __call__(
        self, known: KnownFacts, subjects: Indices, relations: Indices, targets: Indices, protocol: Protocol
    ) -> tuple[Tensor, Tensor]:
        """(Q) each; NaN better where a score is NaN."""
        size = batch_size(self.share.length, self.model.device, self.memory)
        parts = []
        for start in range(0, len(subjects), size):
            batch = slice(start, start + size)
            removed = removed_cells(known, subjects[batch], relations[batch], targets[batch], protocol)
            asked = [torch.from_numpy(numbers[batch]) for numbers in (subjects, relations, targets)]
            parts.append(self._counted(*(numbers.to(self.model.device) for numbers in (*asked, removed))))
        better, no_worse = torch.cat(parts, 1)
        return better, no_worse - better - 1  # the target equals itself

    def _counted(self, subjects: Tensor, relations: Tensor, targets: Tensor, removed: Tensor) -> Tensor:
        """(2, B): entities that score above the target, and those that score no worse."""
        scores = self.scores(subjects, relations)
        mine = self.mine(targets)
        own = scores.new_zeros(len(targets))
        own[mine] = scores[mine, targets[mine] - self.share.start]
        own = self.ranks.one_of(own)[:, None]
        return self.ranks.total(count(scores, own, self.own_cells(removed)))

    @torch.no_grad()
    def among(self, subjects: Indices, relations: Indices, entities: Indices) -> Tensor:
        """Better + equal / 2 (Q) among drawn candidates: ``entities`` (Q, 1 + n), the target first.

        Every rank has all candidates, and scores those whose rows it has.
        """
        subject, relation = (torch.from_numpy(of).to(self.model.device) for of in (subjects, relations))
        query = self.query(subject, relation)
        mine = self.mine(torch.from_numpy(entities)).numpy()
        counts = mine.sum(1)
        # Moved to the left, in order: a target stays first.
        held = np.arange(max(1, counts.max())) < counts[:, None]
        own = np.full(held.shape, -1)
        own[held] = entities[mine] - self.share.start
        empty = torch.zeros(held.shape, dtype=self.model.dtype, device=self.model.device)
        scores = scores_among(self.model, *query, own) if len(self.share) else empty
        there, targets = (torch.from_numpy(of).to(scores.device) for of in (held, mine[:, :1]))
        there[:, :1] &= ~targets
        of_target = self.ranks.one_of(torch.where(targets, scores[:, :1], 0))
        return self.ranks.total(better_or_half(scores, of_target, there))
