"""Negatives that are not training facts."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.negatives.negatives import Drawn, Negatives

AGAIN = 4  # times that a training fact is drawn again


class Checked(Negatives):
    """The tail is replaced with any entity; if that makes a *training* fact, it is drawn again, up to four times.

    If a question's answers are a share p of all entities, a share p⁵ of its negatives is still true. Facts of valid and
    test must not be used here: they would leak into training.
    """

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        """The facts' questions (s, r), sorted, and the facts as (place of the question, object), sorted.

        One key of s, r and o would not fit into 64 bits for graphs of 10⁸ entities.
        """
        super().prepare(triples, num_entities, num_relations)
        self.num_relations = num_relations
        self.questions, place = torch.unique(self._question(triples.long()), return_inverse=True)
        self.facts = torch.unique(place * num_entities + triples[:, 2])

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        place, known = self._found(self.questions, self._question(positives))
        # A question that train does not have stands behind all others, where no fact is.
        place = torch.where(known, place, len(self.questions))[..., None]
        shape = (*positives.shape[:-1], self.negatives)
        objects = self.uniform(shape, positives.device, generator)
        for _ in range(AGAIN):
            keys = place * self.num_entities + objects
            _, true = self._found(self.facts, keys)
            objects = torch.where(true, self.uniform(shape, positives.device, generator), objects)
        return Drawn(objects)

    def _question(self, triples: Tensor) -> Tensor:
        return triples[..., 0] * self.num_relations + triples[..., 1]

    @staticmethod
    def _found(values: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The places of the keys in the sorted ``values``, and whether they are there."""
        place = torch.searchsorted(values, keys).clamp(max=len(values) - 1)
        return place, values[place] == keys
