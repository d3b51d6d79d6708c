"""The interface of negatives: false triples for a batch of true ones, a pure function of a random generator.

They know only the training facts: facts of valid and test never reach training.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from murp.settings import Part, Span, setting


@dataclass
class Drawn:
    """False triples: ``objects`` (…, B, k), or (…, k) shared by the batch; ``subjects`` (…, B, k) where those are
    replaced as well."""

    objects: Tensor
    subjects: Tensor | None = None

    def of(self, part: slice) -> Drawn:
        """The negatives of the triples in ``part`` of each batch (S, …); negatives that a batch shares stay as they
        are."""
        if self.objects.dim() == 2:
            return self
        return Drawn(self.objects[:, part], None if self.subjects is None else self.subjects[:, part])


class Negatives(Part):
    """Replaces the tail of a true triple (s, r, o); heads are predicted with reciprocal relations."""

    negatives: int = setting(50, "false triples for each true one", least=1, search=Span(10, 250, log=True))

    num_entities = 0

    def prepare(self, triples: Tensor, num_entities: int, num_relations: int) -> None:
        """Before training: the training triples (n, 3) with their reciprocals, on the device of the model."""
        self.num_entities = num_entities

    @property
    def reads_facts(self) -> bool:
        """Whether :meth:`prepare` reads the training triples; otherwise they may be left out there."""
        return type(self).prepare is not Negatives.prepare

    @abstractmethod
    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        """False triples for positives (…, B, 3).

        Those of a triple depend on this triple, its place and the generator alone, and how many numbers are taken from
        the generator depends only on shapes: one of many ranks has zeros in place of the triples of the others.
        """

    def uniform(self, shape: tuple[int, ...], device: torch.device, generator: torch.Generator | None) -> Tensor:
        """Entities of ``shape``, drawn uniformly."""
        return torch.randint(self.num_entities, shape, generator=generator, device=device)
