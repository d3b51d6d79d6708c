"""The candidates of the questions of a split: score, rank, and whether the split has the fact.

A candidate of (s, r, ?) is every entity that is not an answer in an earlier split and, unless the relation has loops,
not s itself: what :func:`murp.prediction.predict` offers as new. Heads are predicted with the reciprocal relation. A
candidate is true if the split has the fact; all others count as false, although some of them may be true facts that are
missing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murp.errors import DataError, NotFiniteError
from murp.graph import SPLITS, Indices, KnowledgeGraph, KnownFacts, Split, Triples, relations_with_loops
from murp.models import Model
from murp.prediction.probability import Floats
from murp.prediction.search import score, top_objects

BEST = 100  # of each question: these are taken one by one
DRAWN = 20  # of each question from all that is left; each stands for many
MOST_QUESTIONS, LEAST_QUESTIONS, MOST_SCORES = 10_000, 1_000, 2**31


@dataclass(frozen=True, eq=False)
class Candidates:
    """Scores φ (n), places from 1 on (n), which are true (n), and for how many candidates each stands (n)."""

    scores: Floats
    places: Floats
    true: NDArray[np.bool_]
    weights: Floats
    questions: int

    def best(self, k: int) -> Candidates:
        """The ``k`` best of each question."""
        kept = self.places < k + 0.5  # places are differences of long sums, and the k-th may be a rounding error late
        return Candidates(
            self.scores[kept], self.places[kept], self.true[kept], self.weights[kept], questions=self.questions
        )


def places_among_new(new: NDArray[np.bool_]) -> Indices:
    """The place that each answer of rankings (…, k) has among those that no split states; a known one: would have."""
    return np.asarray(1 + np.cumsum(new, axis=-1) - new, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Questions:
    """Subjects (Q) and relations (Q), the facts ``known`` from earlier splits, and the ``answers`` to find."""

    subjects: Indices
    relations: Indices
    known: KnownFacts
    answers: KnownFacts


def facts_of(graph: KnowledgeGraph, split: Split) -> Triples:
    """The facts of a split; it is an error if there are none."""
    facts = graph.split(split)
    if len(facts) == 0:
        raise DataError(f"{graph.name}: the {split} split has no triples. Add some to its file.")
    return facts


def questions_of(graph: KnowledgeGraph, split: Split, draw: np.random.Generator) -> Questions:
    """The questions of a split, in both directions, that have an answer to find; if there are very many, a sample."""
    known = KnownFacts.of(graph, SPLITS[: SPLITS.index(split)])
    facts = graph.with_reciprocals(facts_of(graph, split)).astype(np.int64)
    earlier = known.states(facts[:, 0], facts[:, 1], facts[:, 2:])[:, 0]
    answers = KnownFacts(facts[~earlier].astype(np.int32), graph.num_relations)
    asked = answers.keys
    if len(asked) == 0:
        raise DataError(f"{graph.name}: earlier splits state every fact of {split}, so there is nothing to find in it.")
    most = min(MOST_QUESTIONS, max(LEAST_QUESTIONS, MOST_SCORES // graph.num_entities))
    if len(asked) > most:
        asked = np.sort(draw.choice(asked, most, replace=False))
    return Questions(*np.divmod(asked, 2 * graph.num_relations), known, answers)


def candidates(model: Model, graph: KnowledgeGraph, split: Split, seed: int) -> Candidates:
    """The candidates of the questions of ``split``.

    Of each question the ``BEST`` best and every true one stand for themselves. Of the others ``DRAWN`` are drawn, one
    from each of as many equal parts, and stand for all of them: weighted sums over these rows have the sums over all
    candidates as their means. The place of a row is 1 + how many candidates score above it, and for a drawn one the
    middle of those it stands for.
    """
    draw = np.random.default_rng(seed)
    asked = questions_of(graph, split, draw)
    query = asked.subjects, asked.relations
    apart = ~relations_with_loops(graph)[asked.relations]
    best = top_objects(model, *query, BEST, without=asked.known, without_subject=apart)
    there = best.entities >= 0
    best_row, best_object = np.nonzero(there)[0], best.entities[there]
    true_row, true_object = asked.answers.objects_of(*query)
    known_row, known_object = asked.known.objects_of(*query)
    taken_rows = np.concatenate([best_row, true_row, known_row, np.flatnonzero(apart)])
    taken_objects = np.concatenate([best_object, true_object, known_object, asked.subjects[apart]])
    row, drawn, weight = _draw_others(taken_rows, taken_objects, len(apart), graph.num_entities, draw)

    n = graph.num_entities
    deep = ~np.isin(true_row * n + true_object, best_row * n + best_object)
    below_row = np.concatenate([true_row[deep], row])
    below_object = np.concatenate([true_object[deep], drawn])
    below = score(model, np.column_stack([asked.subjects[below_row], asked.relations[below_row], below_object]))
    scores = np.concatenate([best.scores[there], below])
    if not np.isfinite(scores).all():
        raise NotFiniteError("the model gives scores that are not finite. Train again with a lower learning rate.")
    weights = np.concatenate([np.ones(len(best_row) + deep.sum()), weight])
    places = _places(np.concatenate([best_row, below_row]), scores, weights)
    among_best = asked.answers.states(*query, best.entities)[there]
    true = np.concatenate([among_best, np.ones(deep.sum(), bool), np.zeros(len(row), bool)])
    return Candidates(scores, places, true, weights, len(apart))


def _draw_others(
    rows: Indices, objects: Indices, questions: int, entities: int, draw: np.random.Generator
) -> tuple[Indices, Indices, Floats]:
    """Up to ``DRAWN`` entities of each question besides those (row, object) taken: row, entity, weight; all if few.

    Left to a question are m entities; the u-th of them has u + j as its number, where j of those taken stand before it.
    """
    taken = np.unique(rows * entities + objects)
    row, entity = np.divmod(taken, entities)
    counts = np.bincount(row, minlength=questions)
    starts = np.cumsum(counts) - counts
    left = entities - counts
    several = np.minimum(DRAWN, left)
    of, part = np.nonzero(np.arange(DRAWN) < several[:, None])
    width = left[of] / several[of]
    u = np.minimum(((part + draw.random(len(of))) * width).astype(np.int64), left[of] - 1)
    left_before = row * (entities + 1) + entity - (np.arange(len(taken)) - starts[row])
    passed = np.searchsorted(left_before, of * (entities + 1) + u, side="right") - starts[of]
    return of, u + passed, width


def _places(rows: Indices, scores: Floats, weights: Floats) -> Floats:
    """(n), (n), (n) → (n): within its row, the weight above and then the middle of its own."""
    order = np.lexsort((-scores, rows))
    through = np.cumsum(weights[order])
    first = np.searchsorted(rows[order], rows[order], side="left")
    before = np.where(first > 0, through[first - 1], 0.0)
    places = np.empty(len(rows))
    places[order] = through - before - weights[order] + (weights[order] + 1) / 2
    return places
