"""Evaluation on many ranks: each process scores its own candidates, and the counts are added.

A score depends only on its query and its candidate, bit for bit (see :mod:`murp.models.blocks`). So the result is the
same as in one process with the same arithmetic.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor

from murp.distributed.ranks import Ranks
from murp.distributed.shares import Share, apart, side_by_side, widths
from murp.evaluation.ranks import Protocol, batch_size, count, removed_cells
from murp.evaluation.sampled import better_or_half, scores_among
from murp.graph import Indices, KnownFacts
from murp.models.model import Model, Rows


class Counting:
    """Counts better and equal entities of queries, for :func:`murp.evaluation.ranks.rank`.

    ``memory`` limits the bytes of the scores on this rank; the default is the same as for one process.
    """

    def __init__(self, ranks: Ranks, model: Model, memory: int | None = None) -> None:
        self.ranks = ranks
        self.memory = memory
        self.share = Share(model.num_entities, ranks.rank, ranks.size)
        self.model = copy.copy(model)
        self.model.num_entities = len(self.share)

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
        query = self._rows(subjects), self.model.rows("relation", relations)
        empty = torch.empty(len(subjects), 0, dtype=self.model.dtype, device=subjects.device)
        scores = self.model.score_queries(*query) if len(self.share) else empty
        mine = self._mine(targets)
        own = scores.new_zeros(len(targets))
        own[mine] = scores[mine, targets[mine] - self.share.start]
        own = self.ranks.one_of(own)[:, None]
        here = self._mine(removed[1])
        cells = torch.stack([removed[0, here], removed[1, here] - self.share.start])
        return self.ranks.total(count(scores, own, cells))

    @torch.no_grad()
    def among(self, subjects: Indices, relations: Indices, entities: Indices) -> Tensor:
        """Better + equal / 2 (Q) among drawn candidates: ``entities`` (Q, 1 + n), the target first.

        Every rank has all candidates, and scores those whose rows it has.
        """
        subject, relation = (torch.from_numpy(of).to(self.model.device) for of in (subjects, relations))
        query = self._rows(subject), self.model.rows("relation", relation)
        mine = (entities >= self.share.start) & (entities < self.share.stop)
        count = mine.sum(1)
        # Moved to the left, in order: a target stays first.
        held = np.arange(max(1, count.max())) < count[:, None]
        own = np.full(held.shape, -1)
        own[held] = entities[mine] - self.share.start
        empty = torch.zeros(held.shape, dtype=self.model.dtype, device=self.model.device)
        scores = scores_among(self.model, *query, own) if len(self.share) else empty
        there, targets = (torch.from_numpy(of).to(scores.device) for of in (held, mine[:, :1]))
        there[:, :1] &= ~targets
        of_target = self.ranks.one_of(torch.where(targets, scores[:, :1], 0))
        return self.ranks.total(better_or_half(scores, of_target, there))

    def _rows(self, entities: Tensor) -> Rows:
        """The rows of some entities as subjects, from the ranks that have them."""
        columns = {
            name: width
            for name, width in widths(self.model, "entity").items()
            if name in {table.name for table in self.model.tables if "subject" in table.roles}
        }
        mine = self._mine(entities)
        held = {
            name: self.model.parameters[name].view(len(self.share), width)[entities[mine] - self.share.start]
            for name, width in columns.items()
        }
        values = torch.zeros(len(entities), sum(columns.values()), dtype=self.model.dtype, device=entities.device)
        values[mine] = side_by_side(held)
        shapes = {table.name: table.shape for table in self.model.tables}
        found = apart(self.ranks.one_of(values), columns)
        return {name: rows.reshape(-1, *shapes[name]) for name, rows in found.items()}

    def _mine(self, entities: Tensor) -> Tensor:
        return (entities >= self.share.start) & (entities < self.share.stop)
