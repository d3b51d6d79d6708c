"""Train the rows of new entities and relations in a trained model, while all other rows stay fixed.

The new rows are trained with the run's own objective, on facts about them and on *background*: facts without new
entities, for which the new entities are wrong answers. Without background, nothing would keep new entities away from
questions to which they are not answers. If a share p of the entities is new, a full training would have a share p of
all questions with a new entity among the negatives. Here there are ``MORE`` times as many such questions, with only new
negatives. If every entity is a candidate, questions with old answers weigh more instead (``OLD_ANSWERS``).

Two things differ from the training. The optimizer is always Adam: the neighbours are fixed, so a new row must travel
the whole distance alone, in few steps, and the run's learning rate was chosen for many. And there is no regularizer: it
would keep a new row short among old rows of full length, and the new row would lose its facts to them.

Only new rows change (:class:`murp.training.new_rows.NewRows`), so old rows keep their values, bit for bit, for any
model and objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp.config import Config
from murp.engines import Chunk, Task, TorchEngine
from murp.errors import DivergedError
from murp.graph import Triples
from murp.graph.adding_facts import Growth
from murp.models import Model
from murp.negatives import Drawn, Negatives
from murp.objectives.one_vs_all import OneVsAll
from murp.optimizers.adam import Adam
from murp.optimizers.sgd import SGD
from murp.regularizers.none import Nothing
from murp.training.initial_positions import set_initial_positions
from murp.training.new_rows import Fresh, NewRows
from murp.training.sampler import Sampler

# Chosen on valid facts about held-out entities (benchmarks/extending.py): MuRP by SGD, RESCAL by Adagrad.
OPTIMIZER = Adam(lr=0.5, beta2=0.98)  # its rate is the length of a row's first step; see NewRows
EPOCHS = 15  # of a run by SGD, at least
STEPS_AN_EPOCH = 3  # steps of such an epoch
LARGE = 2**16  # questions of a step, at most
NUMBERS = 2**27  # that a step larger than the training's reads or scores, at most: half a gigabyte of float32
MORE = 3
AMONG_ALL = 2  # questions of background for each new one where every entity is a candidate
OLD_ANSWERS = 2.0  # weight of questions with an old answer there: they keep new entities from being everybody's answer
STEPS = 40  # of other runs, at least: a pass of theirs costs more, as they have more candidates for a question
MORE_STEPS = 200  # and up to so many, while that asks less than this share of the questions of the whole training
SHARE = 0.0085
STEPS_A_CHUNK = 16  # fewer than a GPU captures as one graph, which would take longer than all steps
Say = Callable[[int], None]


class AgainstNew(Negatives):
    """A run's negatives; background facts get new entities as negatives, see :class:`Fresh`."""

    def __init__(self, own: Negatives, fresh: Fresh) -> None:
        super().__init__(negatives=own.negatives)
        self.own, self.fresh, self.num_entities = own, fresh, own.num_entities

    def draw(self, positives: Tensor, generator: torch.Generator | None) -> Drawn:
        assert generator is not None
        drawn = self.own.draw(positives, generator)
        return Drawn(self.fresh.against(positives, drawn.objects, generator), drawn.subjects)


def train_new_entities(
    model: Model,
    growth: Growth,
    config: Config,
    *,
    epochs: int | None = None,
    seed: int = 0,
    advance: Say = lambda _: None,
) -> None:
    """Train only the rows of new entities and relations of ``model``, which already has the trained rows.

    ``advance`` is called after every epoch.
    """
    fresh = Fresh.of(growth, model.device)
    kept = {table.name: model.parameters[table.name].clone() for table in model.tables if not table.trained}
    set_initial_positions(model, growth)
    new, old = (
        torch.from_numpy(facts).to(model.device).long() for facts in questions(growth, reciprocals=model.reciprocals)
    )
    task = Task.of(config, model)
    task.optimizer, task.regularizer = OPTIMIZER, Nothing()
    task.negatives.prepare(torch.cat([old, new]), model.num_entities, model.num_relations)
    task.objective.prepare(torch.cat([old, new]), model.num_entities)
    if isinstance(task.objective, OneVsAll):
        is_old = torch.arange(model.num_entities, device=model.device) < fresh.first
        task.objective.favour(torch.where(is_old, OLD_ANSWERS, 1.0))
    if task.objective.sampled:
        task.negatives = AgainstNew(task.negatives, fresh)
    engine = TorchEngine(task, compile_after=math.inf)  # compiling would take longer than all steps
    engine.updater = NewRows(task, fresh)
    background = _background(task, growth, len(new), len(old))
    seeds = np.random.default_rng(seed)
    draw = torch.Generator(model.device).manual_seed(int(seeds.integers(2**62)))

    def drawn() -> Tensor:
        some = torch.randint(max(1, len(old)), (background,), generator=draw, device=old.device)
        return torch.cat([new, old[some]])

    if task.objective.grouped:  # facts of one question are asked together
        size, epochs = _pace(config, len(torch.unique(_pairs(drawn(), model))), len(old), _numbers(task), epochs)
    else:
        size, epochs = _pace(config, len(new) + background, len(old), _numbers(task), epochs)
        background -= min(background, (len(new) + background) % size)  # batches of one size: a GPU captures each
    for epoch in range(epochs):
        lr = task.optimizer.lr * (1 - epoch / epochs)
        for chunk in _chunks(task, drawn(), old, size, seeds, draw):
            loss = engine.run([chunk], [lr])
        advance(1)
    for name, values in kept.items():
        model.parameters[name].copy_(values)
    if not bool(loss.isfinite().all()) or model.broken():
        advice = "The old run is untouched. Give fewer --epochs, or check the facts."
        raise DivergedError("a new row", epochs, lr, advice)


def _background(task: Task, growth: Growth, new: int, old: int) -> int:
    """How many background questions an epoch has, given ``new`` new questions and ``old`` old ones."""
    if not growth.entities:
        return 0
    if not task.objective.sampled:  # every question has all new entities among its candidates
        return min(old, AMONG_ALL * new)
    return min(old, MORE * (new + old) * growth.entities // growth.graph.num_entities)


def questions(growth: Growth, *, reciprocals: bool) -> tuple[Triples, Triples]:
    """Questions from the new facts and the old facts of train, in both directions if the model is trained so."""
    graph = growth.graph
    old = graph.train[: len(graph.train) - len(growth.facts)]
    both = graph.with_reciprocals if reciprocals else (lambda facts: facts)
    return both(growth.facts), both(old)


def _numbers(task: Task) -> int:
    """How many numbers a step has for a question: a score for each entity, or the coordinates of what is drawn."""
    model = task.model
    return (1 + task.negatives.negatives) * model.dim if task.objective.sampled else model.num_entities


def _pace(config: Config, asked: int, trained: int, numbers: int, epochs: int | None) -> tuple[int, int]:
    """Questions in a step, and epochs: few large steps, since every step costs a GPU about the same.

    An epoch asks ``asked`` questions; an epoch of the whole training asked ``trained``. ``numbers`` per question limit
    a step, so that it takes little more memory than a training step.
    """
    by_sgd = config.parts["optimizer"] is SGD
    most = min(LARGE, NUMBERS // numbers)
    # Whole batches of the training: kernels that were compiled for those take them as well.
    large = min(most, asked // (STEPS_AN_EPOCH if by_sgd else STEPS)) // config.batch_size * config.batch_size
    size = min(asked, max(config.batch_size, large))
    steps = math.ceil(asked / size)
    if by_sgd:
        return size, epochs or max(EPOCHS, math.ceil(EPOCHS * STEPS_AN_EPOCH / steps))
    affordable = int(SHARE * config.epochs * trained / asked)
    return size, epochs or min(max(math.ceil(STEPS / steps), affordable), math.ceil(MORE_STEPS / steps))


def _chunks(
    task: Task, asked: Tensor, old: Tensor, size: int, seeds: np.random.Generator, draw: torch.Generator
) -> Iterator[Chunk]:
    """Questions in a random order, several steps per chunk."""
    model = task.model
    if task.objective.grouped:  # with all the answers that are known to a question
        every = torch.cat([asked, old[torch.isin(_pairs(old, model), _pairs(asked, model))]]).cpu().numpy()
        options: dict[str, Any] = {"batch_size": size, "negatives": 0, "steps_a_chunk": STEPS_A_CHUNK, "grouped": True}
        seed = int(seeds.integers(2**62))
        sampler = Sampler(every, model.num_entities, seed=seed, device=model.device, **options)
        yield from (sampler.chunk(0, index) for index in range(sampler.chunks))
        return
    order = asked[torch.randperm(len(asked), generator=draw, device=asked.device)]
    whole = len(order) // size
    for first in range(0, whole, STEPS_A_CHUNK):
        steps = order[first * size : min(first + STEPS_A_CHUNK, whole) * size].view(-1, size, 3)
        yield Chunk(steps, model.num_entities, 0, int(seeds.integers(2**62)))
    if len(order) % size:
        yield Chunk(order[whole * size :][None], model.num_entities, 0, int(seeds.integers(2**62)))


def _pairs(triples: Tensor, model: Model) -> Tensor:
    return triples[:, 0] * model.num_relations + triples[:, 1]
