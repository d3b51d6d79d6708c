"""A step that updates only the rows of new entities and relations."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from murp.engines.step import Touched
from murp.engines.task import Task
from murp.engines.updates import Updater, whole_gradient
from murp.graph.growing import Growth
from murp.models.model import Rows


@dataclass(frozen=True, eq=False)
class Fresh:
    """The new entities, from ``first`` on, and the new relations, marked in (2R)."""

    first: int
    entities: int
    relations: Tensor

    @classmethod
    def of(cls, growth: Growth, device: torch.device) -> Fresh:
        """From a graph that was extended."""
        graph = growth.graph
        half = torch.arange(graph.num_relations, device=device) >= graph.num_relations - growth.relations
        return cls(graph.num_entities - growth.entities, graph.num_entities, half.repeat(2))

    def background(self, positives: Tensor) -> Tensor:
        """Which of the triples (…, 3) have no new entity or relation."""
        subject, relation, objects = positives.unbind(-1)
        return (subject < self.first) & (objects < self.first) & ~self.relations[relation]

    def against(self, positives: Tensor, objects: Tensor, generator: torch.Generator) -> Tensor:
        """The negatives; for background, or for every other one if a batch shares them, new entities instead."""
        if self.first == self.entities:
            return objects
        drawn = torch.randint(
            self.first, self.entities, objects.shape, generator=generator, device=objects.device, dtype=objects.dtype
        )
        if objects.dim() == positives.dim():
            return torch.where(self.background(positives).unsqueeze(-1), drawn, objects)
        every_other = torch.arange(objects.shape[-1], device=objects.device) % 2 == 1
        return torch.where(every_other, drawn, objects)

    def rows(self) -> dict[str, list[slice]]:
        """The new rows of tables of each kind; shared tables have none."""
        half = len(self.relations) // 2
        old = half - int(self.relations[:half].sum())
        of_relations = [slice(old, half), slice(half + old, 2 * half)] if old < half else []
        of_entities = [slice(self.first, self.entities)] if self.first < self.entities else []
        return {"entity": of_entities, "relation": of_relations, "shared": []}


class NewRows(Updater):
    """The optimizer's step on new rows; the gradients of all others are dropped."""

    def __init__(self, task: Task, fresh: Fresh) -> None:
        super().__init__(task)
        self.rows = fresh.rows()

    @torch.no_grad()
    def update(self, tables: Rows, touched: Touched, lr: float | Tensor) -> None:
        """Update every new row of ``tables`` that a step has read."""
        for table in self.task.model.tables:
            values, parts = tables[table.name], touched[table.name]
            if not parts or not self.rows[table.of]:
                continue
            gradient = whole_gradient(values, parts)
            for rows in self.rows[table.of]:
                # What a step has not read has no gradient. To mark all that it has read would take a third of the step.
                read = (gradient[rows] != 0).any(1, keepdim=True)
                self._move(table.name, values[rows], gradient[rows], read, self._state(table.name, rows), lr)
