"""Triple classification: true or false by a threshold for each relation, chosen on valid, never on test.

Protocol: the facts of a split, and for each fact one corruption of its head or its tail (at random) that is in no
split. A triple is classified as true if φ(s, r, o) reaches the threshold of r.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from murp.errors import DataError
from murp.graph import Indices, KnowledgeGraph, KnownFacts, Split
from murp.models import Model
from murp.prediction.candidates import facts_of
from murp.prediction.probability import Floats
from murp.prediction.results import ids
from murp.prediction.search import score
from murp.rows import Tabular
from murp.settings import whole_number

_TRIES = 100


@dataclass(frozen=True, eq=False)
class Judged:
    """Scores (n), whether each is of a fact (n), and its relation 0 … R-1 (n)."""

    scores: Floats
    true: NDArray[np.bool_]
    relations: Indices


@dataclass(frozen=True)
class Thresholds:
    """A threshold for each relation that valid has, and one chosen on all of valid for the others."""

    overall: float
    by_relation: dict[int, float]

    def of(self, relations: Indices) -> Floats:
        """The threshold of each of these relations; (n) → (n)."""
        return np.array([self.by_relation.get(r, self.overall) for r in relations.tolist()])

    def accept(self, scores: Floats, relations: Indices) -> NDArray[np.bool_]:
        """Which of these triples count as true; (n), (n) → (n)."""
        return scores >= self.of(relations)


@dataclass(frozen=True)
class Accuracy:
    """The share of facts and corruptions that are classified correctly, and their number."""

    share: float
    triples: int


@dataclass(frozen=True)
class Classification(Tabular):
    """Thresholds chosen on valid, and their accuracy on test: over all, and by relation (its number).

    ``relations`` are the ids of those that test has; ``seed`` drew the corruptions.
    """

    thresholds: Thresholds
    test: Accuracy
    by_relation: dict[int, Accuracy]
    relations: dict[int, str]
    seed: int

    @property
    def protocol(self) -> str:
        """How it was measured, in words."""
        return f"one corruption a fact, of head or tail, seed {self.seed}; thresholds chosen on valid"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "split": "test",
            "protocol": self.protocol,
            "accuracy": self.test.share,
            "triples": self.test.triples,
            "threshold": self.thresholds.overall,
            "by_relation": {
                self.relations[r]: {
                    "accuracy": part.share,
                    "triples": part.triples,
                    "threshold": self.thresholds.by_relation.get(r),
                }
                for r, part in self.by_relation.items()
            },
        }

    def columns(self) -> dict[str, list[Any]]:
        """A row for all relations together, then one for each."""
        found = self.to_dict()
        rows = {"all": found, **found["by_relation"]}
        names = ("accuracy", "triples", "threshold")
        return {"relation": list(rows), **{name: [row[name] for row in rows.values()] for name in names}}


@dataclass(frozen=True)
class Verdict:
    """A triple by ids, its score, the threshold of its relation, and whether it is classified as true."""

    head: str
    relation: str
    tail: str
    score: float
    threshold: float
    true: bool


def classify(model: Model, graph: KnowledgeGraph, *, seed: int = 0) -> Classification:
    """Choose thresholds on valid and measure accuracy on test; ``seed`` draws the corruptions."""
    seed = whole_number("seed", seed, least=0)
    thresholds = choose_thresholds(judge(model, graph, "valid", seed))
    test = judge(model, graph, "test", seed + 1)
    right = thresholds.accept(test.scores, test.relations) == test.true
    parts = {int(r): _accuracy(right[test.relations == r]) for r in np.unique(test.relations)}
    names = {r: graph.relations.id(r) for r in parts}
    return Classification(thresholds, _accuracy(right), parts, names, seed)


def choose_thresholds(judged: Judged) -> Thresholds:
    """The best threshold over all, and for each relation."""
    by_relation = {}
    for r in np.unique(judged.relations):
        own = judged.relations == r
        by_relation[int(r)] = best_threshold(judged.scores[own], judged.true[own])
    return Thresholds(best_threshold(judged.scores, judged.true), by_relation)


def best_threshold(scores: Floats, true: NDArray[np.bool_]) -> float:
    """A t for which most cases have (score ≥ t) = true: the lowest score, or the middle between two neighbours.

    Of equally good ones the one in the widest gap.
    """
    places, group = np.unique(scores, return_inverse=True)
    facts = np.bincount(group, weights=true)
    false = np.bincount(group) - facts
    right = (np.cumsum(false) - false) + (facts.sum() - (np.cumsum(facts) - facts))
    gaps = np.diff(places, prepend=places[0])
    best = int(np.lexsort((gaps, right))[-1])
    return float(places[best] - gaps[best] / 2)


def verdicts(model: Model, graph: KnowledgeGraph, triples: Indices, thresholds: Thresholds) -> pa.Table:
    """Triples (n, 3) as rows: head, relation, tail by id, score, threshold, and whether it counts as true."""
    scores, relations = score(model, triples), triples[:, 1]
    return pa.table(
        {
            "head": ids(graph.entities, triples[:, 0]),
            "relation": ids(graph.relations, relations),
            "tail": ids(graph.entities, triples[:, 2]),
            "score": scores,
            "threshold": thresholds.of(relations),
            "true": thresholds.accept(scores, relations),
        }
    )


def _accuracy(right: NDArray[np.bool_]) -> Accuracy:
    return Accuracy(float(right.mean()), len(right))


def corrupt(subjects: Indices, relations: Indices, entities: int, known: KnownFacts, seed: int) -> Indices:
    """An object for each (subject, relation) drawn uniformly from those not known, -1 where none was found; (n) → (n).

    Relations from R on are reciprocals, so a head is replaced as the object of its reciprocal fact.
    """
    draw = np.random.default_rng(seed)
    drawn = np.full(len(subjects), -1)
    left = np.arange(len(subjects))
    for _ in range(_TRIES):
        proposed = draw.integers(0, entities, len(left))
        fresh = ~known.states(subjects[left], relations[left], proposed[:, None])[:, 0]
        drawn[left[fresh]] = proposed[fresh]
        left = left[~fresh]
        if len(left) == 0:
            break
    return drawn


def judge(model: Model, graph: KnowledgeGraph, split: Split, seed: int) -> Judged:
    """The score of each fact of a split, and of one corruption of its head or its tail, at random."""
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
