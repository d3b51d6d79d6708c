"""A step that updates only the rows of new entities and relations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from murp.engines.step import Touched
from murp.engines.task import Task
from murp.engines.updates import Updater, whole_gradient
from murp.graph.adding_facts import Growth
from murp.models.model import Rows, Table


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
    """The optimizer's step on new rows; the gradients of all others are dropped.

    The rate is a length: that of a row's first step by Adam, in every table. Adam moves each of n coordinates of a flat
    row by its rate, so that is divided by √n. In a curved space the row moves by the rate as a whole. A product of
    spaces is treated as a flat one, so its steps are shorter.
    """

    def __init__(self, task: Task, fresh: Fresh) -> None:
        super().__init__(task)
        self.rows = fresh.rows()
        self.shares = {table.name: share_of_rate(table) for table in task.model.tables}

    @torch.no_grad()
    def update(self, tables: Rows, touched: Touched, lr: float | Tensor) -> None:
        """Update every new row of ``tables`` that a step has read."""
        for table in self.task.model.tables:
            values, parts = tables[table.name], touched[table.name]
            if not parts or not self.rows[table.of]:
                continue
            gradient, rate = whole_gradient(values, parts), lr * self.shares[table.name]
            for rows in self.rows[table.of]:
                # What a step has not read has no gradient. To mark all that it has read would take a third of the step.
                read = (gradient[rows] != 0).any(1, keepdim=True)
                self._move(table.name, values[rows], gradient[rows], read, self._state(table.name, rows), rate)


def share_of_rate(table: Table) -> float:
    """What a table has of the rate: 1/√n, where Adam gives n numbers of a row steps of their own."""
    return 1 / math.sqrt(math.prod(table.geometry.component_shape((math.prod(table.shape),))))
