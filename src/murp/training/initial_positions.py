"""Initial position of a new entity: near the entities that the model predicts in its place."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from murp.graph import Indices
from murp.graph.adding_facts import Growth
from murp.models import Model
from murp.models.model import Table
from murp.prediction.search import top_objects

ROUNDS = 3  # a new entity with new neighbours alone begins beside those, once they have begun
QUESTIONS = 64  # of an entity, at most: more say nothing more of where to begin


def set_initial_positions(model: Model, growth: Growth) -> None:
    """Start each new entity at the mean of the best old answers to its questions, one for each of its facts.

    (s, r, new) is the question (s, r, ?), (new, r, o) the question (?, r, o). The mean is taken in the coordinates of
    the table and put back into its space. This works for every model, since the model itself predicts the answers. If
    all neighbours of an entity are new, it starts at their mean after they have a position. Other entities, and new
    relations, keep their initial values.

    Plain numbers (biases) start at the mean of old entities with a similar number of facts. The best answers are often
    entities with many facts; with their biases, the new entity would be a likely answer to every question.
    """
    _usual_numbers(model, growth)
    graph = growth.graph
    first = graph.num_entities - growth.entities
    asked = graph.with_reciprocals(growth.facts).astype(np.int64)
    known = asked[:, 1] % graph.num_relations < graph.num_relations - growth.relations
    asked = _few(asked[(asked[:, 2] >= first) & known])
    placed = np.zeros(graph.num_entities, bool)
    placed[:first] = True
    if not model.reciprocals:  # the row of a reciprocal relation has never been trained
        asked = asked[asked[:, 1] < graph.num_relations]
    of_old = asked[asked[:, 0] < first]
    if len(of_old):
        best = _best_old(model, of_old, first)
        _begin(model, best, of_old[:, 2])
        placed[of_old[:, 2]] = True
    for _ in range(ROUNDS):
        further = asked[placed[asked[:, 0]] & ~placed[asked[:, 2]]]
        if len(further) == 0:
            break
        _begin(model, further[:, 0], further[:, 2])
        placed[further[:, 2]] = True


def _few(asked: Indices) -> Indices:
    """At most the first ``QUESTIONS`` questions of each entity."""
    order = np.argsort(asked[:, 2], kind="stable")
    counts = np.bincount(asked[:, 2])
    starts = np.cumsum(counts) - counts
    place = np.arange(len(asked)) - starts[asked[order, 2]]
    few: Indices = asked[order[place < QUESTIONS]]
    return few


def _best_old(model: Model, asked: Indices, first: int) -> Indices:
    """The best-scored old entity for each question. New entities are left out, since their rows have no meaning yet."""
    whole = {table.name: model.parameters[table.name] for table in model.tables if table.of == "entity"}
    number = model.num_entities
    try:
        model.num_entities = first
        for name, values in whole.items():
            model.parameters[name] = values[:first]
        return top_objects(model, asked[:, 0], asked[:, 1], 1).entities[:, 0]
    finally:
        model.num_entities = number
        model.parameters.update(whole)


def _begin(model: Model, sources: Indices, targets: Indices) -> None:
    """Set each target to the mean of its sources, in every table of entities."""
    source, target = (torch.from_numpy(np.asarray(of)).to(model.device) for of in (sources, targets))
    rows, place = torch.unique(target, return_inverse=True)
    for table in model.tables:
        if table.of == "entity" and table.shape:
            values = model.parameters[table.name]
            total = values.new_zeros(len(rows), *values.shape[1:]).index_add_(0, place, values[source])
            counts = torch.bincount(place).view(-1, *[1] * (values.dim() - 1))
            values[rows] = _within(table, total / counts)


def _usual_numbers(model: Model, growth: Growth) -> None:
    """Give new entities the mean numbers of old ones with as many facts, up to the next power of 2; of all if there are
    none."""
    first = growth.graph.num_entities - growth.entities
    facts = np.bincount(growth.graph.train[:, [0, 2]].ravel(), minlength=growth.graph.num_entities)
    kinds = torch.from_numpy(np.log2(np.maximum(facts, 1)).astype(np.int64)).to(model.device)
    old, new = kinds[:first], kinds[first:]
    counts = torch.bincount(old, minlength=int(kinds.max()) + 1)
    for table in model.tables:
        if table.of == "entity" and not table.shape:
            values = model.parameters[table.name]
            total = values.new_zeros(len(counts)).index_add_(0, old, values[:first])
            means = torch.where(counts > 0, total / counts.clamp(min=1), values[:first].mean())
            values[first:] = means[new]


def _within(table: Table, means: Tensor) -> Tensor:
    """Means (n, …) as points of the table's space."""
    found: Tensor = table.geometry.project(means.flatten(1)).view(means.shape)
    return found
