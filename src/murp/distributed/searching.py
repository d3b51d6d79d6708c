"""Answers of many ranks: each keeps the best of its own entities, and these are merged.

The first rank reads questions and makes something of the answers. The others wait for its questions
(:meth:`Searching.help`), so they need no files and have nothing to say.
"""

from __future__ import annotations

import torch
from torch import Tensor

from murp.distributed.own_rows import OwnRows
from murp.distributed.ranks import LONGEST_WAIT, Ranks
from murp.graph import Indices
from murp.models.model import Model
from murp.prediction.search import Floats, best_objects, largest
from murp.threads import torch_alone


class Searching(OwnRows):
    """The best entities of queries, for :func:`murp.prediction.search.top_objects`.

    ``length``: entities that a rank scores at most. ``waiting``: whether the other ranks wait for a question.
    """

    def __init__(self, ranks: Ranks, model: Model) -> None:
        super().__init__(ranks, model)
        # Between two questions the first rank may prepare facts, or wait for someone who reads its answers.
        self.patient = ranks.aside(LONGEST_WAIT)
        self.length = self.share.length
        self.waiting = True

    def __call__(self, subjects: Indices, relations: Indices, left_out: Indices, k: int) -> Floats:
        """(B), (B), cells (2, m) that are no answers → (B, k, 2): entity and score, best first."""
        self.waiting = False
        self.patient.gathered((subjects, relations, left_out, k))
        found = self._merged(subjects, relations, left_out, k)
        self.waiting = True
        return found

    def help(self) -> None:
        """Answer the questions of the first rank, until it has no more."""
        with torch_alone():
            while (asked := self.patient.gathered(None)[0]) is not None:
                self._merged(*asked)

    def end(self) -> None:
        """No more questions."""
        self.patient.gathered(None)

    @torch.no_grad()
    def _merged(self, subjects: Indices, relations: Indices, left_out: Indices, k: int) -> Floats:
        asked, related, cells = (torch.from_numpy(of).to(self.model.device) for of in (subjects, relations, left_out))
        own = self._own(asked, related, cells, k)
        sizes = [own.numel()] * self.ranks.size
        # (ranks, B, k, 2) → (B, ranks · k): of equal scores the first is that of the first entity, as in one process.
        every = self.ranks.exchange(own.flatten().repeat(self.ranks.size), sizes, sizes).view(-1, *own.shape)
        entities, scores = every.permute(3, 1, 0, 2).reshape(2, len(own), -1)
        values, places = largest(scores, k)
        found = entities.gather(1, places)
        found[values == -torch.inf] = -1
        found[(entities == -2).any(1)] = -2  # a score is NaN
        merged: Floats = torch.stack([found, values], -1).numpy()
        return merged

    def _own(self, subjects: Tensor, relations: Tensor, left_out: Tensor, k: int) -> Tensor:
        """(B, k, 2) of this rank's entities; -1 and -∞ where it has fewer than k."""
        best = torch.tensor([-1.0, -torch.inf], dtype=torch.float64).repeat(len(subjects), k, 1)
        scores = self.scores(subjects, relations)
        if some := min(k, len(self.share)):
            found = torch.from_numpy(best_objects(scores, self.own_cells(left_out), some))
            found[..., 0] += torch.where(found[..., 0] >= 0, self.share.start, 0)
            best[:, :some] = found
        return best
