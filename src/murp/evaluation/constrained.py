"""Scores under type constraints: what may not answer comes after all that may."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.evaluation.ranks import Scorer
from murp.graph.types import Types


class Constrained:
    """A model whose refused candidates stand below its allowed ones, each part in the order of the model's scores.

    Where nothing may answer the order is the model's own. No fact is dropped: a true answer that the constraints refuse
    has a rank behind all that they allow.
    """

    def __init__(self, model: Scorer, types: Types) -> None:
        self.model, self.types = model, types

    @property
    def num_entities(self) -> int:
        return self.model.num_entities

    @property
    def device(self) -> torch.device:
        return self.model.device

    def score_objects(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """(B), (B) → (B, N), in double precision, so that a shift makes no ties."""
        scores = self.model.score_objects(subjects, relations).double()
        may = self.types.masks(subjects.cpu().numpy(), relations.cpu().numpy())
        allowed = torch.from_numpy(may).to(scores.device)
        shift = scores.amax(1, keepdim=True) - scores.amin(1, keepdim=True) + 1
        return torch.where(allowed, scores, scores - shift)
