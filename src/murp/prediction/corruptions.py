"""False facts to judge scores by: a fact with its head or tail replaced, never one that is stated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from murp.errors import DataError
from murp.graph import Indices, KnowledgeGraph, KnownFacts, Split, Triples
from murp.models import Model
from murp.prediction.probability import Floats

_TRIES = 100
_BATCH = 2**14


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores (n) with whether each is that of a fact (n), and of which relation 0 … R-1 (n)."""

    scores: Floats
    true: NDArray[np.bool_]
    relations: Indices


def corrupt(subjects: Indices, relations: Indices, entities: int, known: KnownFacts, seed: int) -> Indices:
    """An object for each (subject, relation) drawn uniformly from those not known, -1 where none was found; (n) → (n).

    Relations from R on are reciprocals, so a head is replaced as the object of its reciprocal fact.
    """
    draw = np.random.default_rng(seed)
    drawn = np.full(len(subjects), -1)
    left = np.arange(len(subjects))
    for _ in range(_TRIES):
        tried = draw.integers(0, entities, len(left))
        fresh = ~known.states(subjects[left], relations[left], tried[:, None])[:, 0]
        drawn[left[fresh]] = tried[fresh]
        left = left[~fresh]
        if len(left) == 0:
            break
    return drawn


def judge(model: Model, graph: KnowledgeGraph, split: Split, seed: int) -> Judged:
    """For each fact (s, r, o) of a split φ(s, r, o), and that of one corruption, of its head or its tail by lot."""
    facts = facts_of(graph, split).astype(np.int64)
    swap = np.random.default_rng([seed, 1]).random(len(facts)) < 0.5
    facts[swap] = facts[swap, ::-1] + [0, graph.num_relations, 0]
    objects = corrupt(facts[:, 0], facts[:, 1], graph.num_entities, KnownFacts.of(graph), seed)
    false = np.column_stack([facts[:, :2], objects])[objects >= 0]
    if len(false) == 0:
        raise DataError(f"{graph.name}: every entity is a known answer to every question; nothing is false here.")
    # As many of both kinds: a fact that could not be corrupted is left out with its corruption.
    triples = np.concatenate([facts[objects >= 0], false])
    true = np.arange(len(triples)) < len(false)
    back = triples[:, 1] >= graph.num_relations
    triples[back] = triples[back, ::-1] - [0, graph.num_relations, 0]
    return Judged(score(model, triples), true, triples[:, 1])


def score(model: Model, triples: Indices) -> Floats:
    """φ of triples (n, 3), a batch at a time."""
    scores = np.empty(len(triples))
    for start in range(0, len(triples), _BATCH):
        batch = torch.from_numpy(triples[start : start + _BATCH].copy()).to(model.device)
        scores[start : start + _BATCH] = model.score(*batch.T).double().cpu().numpy()
    return scores


def facts_of(graph: KnowledgeGraph, split: Split) -> Triples:
    """The facts of a split; it is an error if there are none."""
    facts = graph.split(split)
    if len(facts) == 0:
        raise DataError(f"{graph.name}: the {split} split has no triples. Add some to its file.")
    return facts
