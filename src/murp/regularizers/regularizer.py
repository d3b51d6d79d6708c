"""What a regularizer must offer: a term that is added to the loss of a batch."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from murp.models.model import Model, Query, Rows
from murp.settings import Part


@dataclass
class Batch:
    """What a step has read of its true triples: rows (B, …) of subjects, relations and objects, and the query."""

    subject: Rows
    relation: Rows
    objects: Rows
    shared: Rows
    query: Query


class Regularizer(Part):
    """A term in what a batch has read."""

    def term(self, model: Model, batch: Batch) -> Tensor | None:
        """The mean over the batch, its weight included; None: nothing is added."""
        raise NotImplementedError
