"""Negatives for one hierarchy: entities without a training fact with the head."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives


class Unrelated(Negatives):
    """The tail is replaced with an entity to which no *training* fact leads from the head, by any relation.

    The head itself counts as related. Related entities are drawn again, up to four times: if they are a share p of
    all entities, a share p⁵ of the negatives is still related.

    Nickel, Kiela: Poincaré Embeddings for Learning Hierarchical Representations, NeurIPS 2017, equation 5.
    """

    again = 4

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        """The related entities of every entity, sorted; those of s are ``related[starts[s] : starts[s + 1]]``."""
        super().prepare(triples, num_entities, num_relations)
        own = torch.arange(num_entities, device=triples.device)
        pairs = torch.cat([triples[:, 0].long() * num_entities + triples[:, 2], own * num_entities + own])
        self.keys = torch.unique(pairs)
        self.related = self.keys % num_entities
        firsts = torch.arange(num_entities + 1, device=triples.device) * num_entities
        self.starts = torch.searchsorted(self.keys, firsts)

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        subjects = positives[..., :1].expand(*positives.shape[:-1], self.negatives)
        objects = self.proposed(subjects, generator)
        for _ in range(self.again):
            keys = subjects * self.num_entities + objects
            place = torch.searchsorted(self.keys, keys).clamp(max=len(self.keys) - 1)
            objects = torch.where(self.keys[place] == keys, self.proposed(subjects, generator), objects)
        return Drawn(objects)

    def proposed(self, subjects: Tensor, generator: torch.Generator | None) -> Tensor:
        """An entity for each subject, which may be related."""
        return self.uniform(tuple(subjects.shape), subjects.device, generator)


class Relatives(Unrelated):
    """The tail is replaced with a relative of the head, or with any entity, half of each; the facts are a closure.

    For a relative, draw an ancestor of the head (or itself), then a descendant of it; in half of the cases, replace
    that with one of its ancestors. A ranking easily confuses these nodes with the right ones: they are near the head
    in the hierarchy, and half of them are high in it. High nodes are few, and near to all. Entities related to the
    head are drawn again, as in :class:`Unrelated`, but up to 24 times, since they are drawn often here.
    """

    again = 24

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        """Also what every entity is related to: ``below[below_starts[o] : below_starts[o + 1]]``."""
        super().prepare(triples, num_entities, num_relations)
        turned = torch.unique(self.related * num_entities + self.keys // num_entities)
        self.below = turned % num_entities
        firsts = torch.arange(num_entities + 1, device=triples.device) * num_entities
        self.below_starts = torch.searchsorted(turned, firsts)

    def proposed(self, subjects: Tensor, generator: torch.Generator | None) -> Tensor:
        above = _one_of(self.related, self.starts, subjects, generator)
        found = _one_of(self.below, self.below_starts, above, generator)
        coins = torch.randint(4, found.shape, generator=generator, device=found.device)
        found = torch.where(coins % 2 == 1, _one_of(self.related, self.starts, found, generator), found)
        return torch.where(coins >= 2, super().proposed(subjects, generator), found)


def _one_of(values: Tensor, starts: Tensor, which: Tensor, generator: torch.Generator | None) -> Tensor:
    """One of ``values[starts[i] : starts[i + 1]]`` for each i of ``which``, drawn uniformly."""
    first, last = starts[which], starts[which + 1]
    share = torch.rand(which.shape, generator=generator, device=which.device, dtype=torch.float64)
    return values[first + (share * (last - first)).long()]
