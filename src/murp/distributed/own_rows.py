"""The rows of a model that this rank has, for scores of its own entities."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from murp.distributed.ranks import Ranks
from murp.distributed.shares import Share, apart, side_by_side, widths
from murp.models.model import Model, Rows


class OwnRows:
    """A model of this rank's entities only, with queries about all of them.

    ``share``: which entities these are; in ``model`` they are numbered from 0.
    """

    def __init__(self, ranks: Ranks, model: Model) -> None:
        self.ranks = ranks
        self.share = Share(model.num_entities, ranks.rank, ranks.size)
        self.model = copy.copy(model)
        self.model.num_entities = len(self.share)

    def query(self, subjects: Tensor, relations: Tensor) -> tuple[Rows, Rows]:
        """The rows of subjects (B), from the ranks that have them, and of relations (B)."""
        return self._subjects(subjects), self.model.rows("relation", relations)

    def scores(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """φ (B, n) of this rank's n entities as objects."""
        query = self.query(subjects, relations)
        if not len(self.share):
            return torch.empty(len(subjects), 0, dtype=self.model.dtype, device=subjects.device)
        return self.model.score_queries(*query)

    def mine(self, entities: Tensor) -> Tensor:
        """Whether each is an entity of this rank."""
        return (entities >= self.share.start) & (entities < self.share.stop)

    def own_cells(self, cells: Tensor) -> Tensor:
        """Those of the cells (2, m), row and entity, whose entity this rank has, with its own number."""
        here = self.mine(cells[1])
        return torch.stack([cells[0, here], cells[1, here] - self.share.start])

    def _subjects(self, entities: Tensor) -> Rows:
        columns = {
            name: width
            for name, width in widths(self.model, "entity").items()
            if name in {table.name for table in self.model.tables if "subject" in table.roles}
        }
        mine = self.mine(entities)
        held = {
            name: self.model.parameters[name].view(len(self.share), width)[entities[mine] - self.share.start]
            for name, width in columns.items()
        }
        values = torch.zeros(len(entities), sum(columns.values()), dtype=self.model.dtype, device=entities.device)
        values[mine] = side_by_side(held)
        shapes = {table.name: table.shape for table in self.model.tables}
        found = apart(self.ranks.one_of(values), columns)
        return {name: rows.reshape(-1, *shapes[name]) for name, rows in found.items()}
