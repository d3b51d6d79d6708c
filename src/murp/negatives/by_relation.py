"""Negatives whose tail has the right type for the relation."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives

LARGE = 2**62  # of it a remainder by a number of entities is uniform up to 2⁻³⁰


class ByRelation(Negatives):
    """The tail is replaced with one that the relation has in the training facts, drawn uniformly.

    So a city is replaced with another city, not with a person. If a relation has fewer than two tails, any entity is
    drawn.

    Krompaß, Baier, Tresp: Type-constrained representation learning in knowledge graphs, ISWC 2015.
    """

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        """The pool has every entity, then each relation's objects: ``count`` entries from ``start`` on."""
        super().prepare(triples, num_entities, num_relations)
        pairs = torch.unique(triples[:, 1].long() * num_entities + triples[:, 2])  # sorted by relation
        counts = torch.bincount(pairs // num_entities, minlength=num_relations)
        starts = num_entities + counts.cumsum(0) - counts
        few = counts < 2
        self.pool = torch.cat([torch.arange(num_entities, device=pairs.device), pairs % num_entities])
        self.start = torch.where(few, 0, starts)
        self.count = torch.where(few, num_entities, counts)

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        relation = positives[..., 1:2]
        shape = (*positives.shape[:-1], self.negatives)
        chance = torch.randint(LARGE, shape, generator=generator, device=positives.device)
        return Drawn(self.pool[self.start[relation] + chance % self.count[relation]])
