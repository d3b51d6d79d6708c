"""False objects of the kind that the relation has."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives

LARGE = 2**62  # of it a remainder by a number of entities is uniform up to 2⁻³⁰


class ByRelation(Negatives):
    """The object replaced by one that the relation has in the training facts, each as likely.

    So a false city stands in the place of a city, not of a person. A relation with fewer than two objects has no such
    choice: there any entity is drawn.

    Krompaß, Baier, Tresp: Type-constrained representation learning in knowledge graphs, ISWC 2015.
    """

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        """The pool is every entity, then each relation's objects; a relation has ``count`` of it from ``start`` on."""
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
