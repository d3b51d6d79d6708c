"""Negatives for many ranks: each rank's slices have negatives that lie on this rank."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.negatives.uniform import Uniform
from murp.settings import setting


class Local(Uniform):
    """The tail is replaced with an entity of one part of the graph, drawn uniformly; for ranks, which then send less.

    The N entities have P parts, and so has a batch of B triples. Triple b of a batch is in part p = ⌈(b + 1)·P/B⌉ - 1,
    and its negatives are among the L = ⌈N/P⌉ entities from ⌊p·N/P⌋ on. If P and the number of slices are multiples of
    the number of ranks, nearly all of these are rows of the rank that computes the triple (a few at borders of parts
    are not): only heads and tails of true triples travel.

    An epoch has its triples in random order, so each one meets all parts in the course of the training. All entities
    are drawn with the same probability if P divides B and N. Otherwise some parts have one triple more than others, and
    neighbouring parts may share one entity, which is drawn from both.
    """

    entity_parts: int = setting(
        8, "parts of the entities, each for a part of the batch; a multiple of the number of ranks", least=1
    )

    @classmethod
    def refuse(cls, config: Any) -> None:
        if config.entity_parts > config.batch_size:
            raise ConfigError(
                f"a batch of {config.batch_size} triples cannot be cut into {config.entity_parts} parts, so that some "
                "entities would never be drawn: choose a smaller entity_parts, or a larger batch_size.",
                "entity_parts",
            )

    @property
    def choices(self) -> int:
        return -(-self.num_entities // self.entity_parts)

    def entities(self, numbers: Tensor, batch: int, part: slice) -> Tensor:
        parts = self.entity_parts
        place = torch.arange(batch, device=numbers.device)[part]
        first = ((place + 1) * parts - 1) // batch * self.num_entities // parts
        return numbers + first[:, None]
