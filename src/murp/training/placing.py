"""Where new entities and relations go in a trained model, while the rest stays where it is.

The new rows are trained by the run's own objective, on facts about them and on *background*: facts without anything
new, for which the new entities are the wrong answers. Without background nothing would keep the new ones away from
questions that they do not answer. With a share p of new entities a whole training would ask p times all questions with
a new entity among the negatives. Here it is ``MORE`` times as many, each with new negatives alone: there are fewer
epochs to drive the new ones away.

A step is the engine's own, on all rows that it reads; then every old row is put back. So the old rows have at every
step, bit for bit, the values that they had, whatever the model, the objective and the optimizer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import engines
from murp.config import Config
from murp.engines import Chunk, Engine, Task
from murp.engines.engine import WHOLE
from murp.errors import DivergedError
from murp.graph import Triples
from murp.graph.growing import Growth
from murp.models import Model
from murp.negatives import Drawn, Negatives
from murp.objectives import Objective
from murp.optimizers.sgd import SGD
from murp.training.first_guess import first_guess
from murp.training.sampler import Sampler

# Chosen on valid facts about held-out entities (benchmarks/extending.py): MuRP by SGD, RESCAL by Adagrad.
EPOCHS = 6  # by SGD, at least
STEPS_BY_SGD = 120  # at least: with fewer, new rows do not arrive
LARGE = 2048  # questions of a step by SGD, whose learning rate grows with the batch: a row moves as it did in training
MORE = 3
AMONG_ALL = 2  # questions of background for each new one where every entity is a candidate
STEPS = 40  # by other optimizers, at least: their steps are as long in a small batch as in a large one
Say = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Fresh:
    """What is new: entities from ``first`` on, and relations (2R) that are marked."""

    first: int
    entities: int
    relations: Tensor

    @classmethod
    def of(cls, growth: Growth, device: torch.device) -> Fresh:
        """As a graph has grown."""
        graph = growth.graph
        half = torch.arange(graph.num_relations, device=device) >= graph.num_relations - growth.relations
        return cls(graph.num_entities - growth.entities, graph.num_entities, half.repeat(2))

    def background(self, positives: Tensor) -> Tensor:
        """Which of triples (…, 3) have nothing new."""
        subject, relation, objects = positives.unbind(-1)
        return (subject < self.first) & (objects < self.first) & ~self.relations[relation]

    def against(self, positives: Tensor, objects: Tensor, generator: torch.Generator) -> Tensor:
        """False objects as they were drawn; for background, or where a batch shares them every other, new entities."""
        if self.first == self.entities:
            return objects
        drawn = torch.randint(
            self.first, self.entities, objects.shape, generator=generator, device=objects.device, dtype=objects.dtype
        )
        if objects.dim() == positives.dim():
            return torch.where(self.background(positives).unsqueeze(-1), drawn, objects)
        every_other = torch.arange(objects.shape[-1], device=objects.device) % 2 == 1
        return torch.where(every_other, drawn, objects)


class AgainstNew(Negatives):
    """A run's negatives, of which background has new entities; see :class:`Fresh`."""

    def __init__(self, own: Negatives, fresh: Fresh) -> None:
        super().__init__(negatives=own.negatives)
        self.own, self.fresh, self.num_entities = own, fresh, own.num_entities

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        assert generator is not None
        drawn = self.own.draw(positives, generator)
        return Drawn(self.fresh.against(positives, drawn.objects, generator), drawn.subjects)


@dataclass(frozen=True)
class ChunkAgainstNew(Chunk):
    """The same for engines that take a chunk's own negatives."""

    fresh: Fresh | None = None

    def draw(self, part: slice = WHOLE) -> Tensor:
        assert self.fresh is not None
        generator = torch.Generator(self.positives.device).manual_seed(self.seed ^ 1)
        return self.fresh.against(self.positives, super().draw(), generator)[:, part]


class Held:
    """The rows that must not move, and their values."""

    def __init__(self, model: Model, fresh: Fresh) -> None:
        half = len(fresh.relations) // 2
        old = half - int(fresh.relations[:half].sum())
        rows = {"entity": [slice(0, fresh.first)], "relation": [slice(0, old), slice(half, half + old)]}
        rows["shared"] = [slice(None)]
        self.kept = [
            (model.parameters[table.name][part], model.parameters[table.name][part].clone())
            for table in model.tables
            for part in rows[table.of]
        ]

    def put_back(self) -> None:
        """As they were."""
        for row, value in self.kept:
            row.copy_(value)


def place(
    model: Model,
    growth: Growth,
    config: Config,
    *,
    epochs: int | None = None,
    seed: int = 0,
    advance: Say = lambda _: None,
) -> None:
    """Train the rows of new entities and relations of ``model``, which has the trained rows already, and no other.

    ``advance`` is told of every epoch that is done.
    """
    fresh = Fresh.of(growth, model.device)
    held = Held(model, fresh)
    first_guess(model, growth)
    new, old = questions(growth, reciprocals=model.reciprocals)
    task = Task.of(config, model)
    task.compile_after = math.inf  # it would take longer than all steps
    every = torch.from_numpy(np.concatenate([old, new])).to(model.device)
    task.negatives.prepare(every, model.num_entities, model.num_relations)
    engine = _engine(task, fresh)
    background = _background(task, growth, len(new), len(old))
    size, rate, epochs = _pace(config, len(new) + background, epochs)
    background -= min(background, (len(new) + background) % size)  # batches of one size: a GPU captures each
    draw = np.random.default_rng(seed)
    for epoch in range(epochs):
        chosen = old[draw.choice(len(old), background, replace=False)]
        asked = np.concatenate([new, chosen])
        sampler = _sampler(task.objective, asked, old, config, size, model, int(draw.integers(2**62)))
        lr = rate * (1 - epoch / epochs)
        for index in range(sampler.chunks):
            chunk = sampler.chunk(epoch, index)
            loss = engine.run([ChunkAgainstNew(**vars(chunk), fresh=fresh)], [lr])
            held.put_back()
        advance(1)
        if not bool(loss.isfinite().all()) or model.broken():
            advice = "The old run is untouched. Give fewer --epochs, or check the facts."
            raise DivergedError("a new row", epoch + 1, lr, advice)


def _background(task: Task, growth: Growth, new: int, old: int) -> int:
    """How many questions without anything new an epoch asks, where it asks ``new`` of the others and has ``old``."""
    if not growth.entities:
        return 0
    if not task.objective.sampled:  # every question has all new entities among its candidates
        return min(old, AMONG_ALL * new)
    return min(old, MORE * (new + old) * growth.entities // growth.graph.num_entities)


def questions(growth: Growth, *, reciprocals: bool) -> tuple[Triples, Triples]:
    """The new facts and the old ones of train, each asked from both sides where the model is trained so."""
    graph = growth.graph
    old = graph.train[: len(graph.train) - len(growth.facts)]
    both = graph.with_reciprocals if reciprocals else (lambda facts: facts)
    return both(growth.facts), both(old)


def _engine(task: Task, fresh: Fresh) -> Engine:
    """The fused engine where it takes a chunk's own negatives; else PyTorch's."""
    if task.model.device.type == "cpu" and engines.can("numba", task) and task.as_published:
        return engines.build("numba", [task])
    if task.objective.sampled:
        task.negatives = AgainstNew(task.negatives, fresh)
    return engines.build("torch", [task])


def _pace(config: Config, asked: int, epochs: int | None) -> tuple[int, float, int]:
    """Questions of a step, learning rate, and epochs."""
    if config.parts["optimizer"] is SGD:
        enough = min(LARGE, asked * EPOCHS // STEPS_BY_SGD)
        size = min(asked, max(config.batch_size, enough))
        least = math.ceil(STEPS_BY_SGD / math.ceil(asked / size))
        return size, config.lr * size / config.batch_size, epochs or max(EPOCHS, least)
    size = min(asked, config.batch_size)
    steps = math.ceil(asked / size)
    return size, config.lr, epochs or math.ceil(STEPS / steps)


def _sampler(
    objective: Objective, asked: Triples, old: Triples, config: Config, size: int, model: Model, seed: int
) -> Sampler:
    """Questions in a random order, a step a chunk."""
    options: dict[str, Any] = {"negatives": getattr(config, "negatives", 0), "seed": seed, "steps_a_chunk": 1}
    if objective.grouped:  # with all the answers that are known to a question
        pairs = _pairs(asked, model)
        asked = np.concatenate([asked, old[np.isin(_pairs(old, model), pairs)]])
    return Sampler(
        asked, model.num_entities, batch_size=size, device=model.device, grouped=objective.grouped, **options
    )


def _pairs(triples: Triples, model: Model) -> np.ndarray[Any, np.dtype[np.int64]]:
    return triples[:, 0].astype(np.int64) * model.num_relations + triples[:, 1]
