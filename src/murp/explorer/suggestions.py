"""Suggested questions: about important entities, with new answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.errors import NotFiniteError
from murp.explorer.collection import Collection

SUGGESTED = 3
LOOKED_AT = 60  # of the most important entities, by relation
ANSWERS = (5, 60)  # known answers of a question that is easy to grasp: at least, at most


def suggested(collection: Collection) -> list[dict[str, Any]]:
    """Three questions, found once; none of a model whose scores are no numbers."""
    if collection.suggestions is None:
        try:
            collection.suggestions = find_questions(collection)
        except NotFiniteError:
            collection.suggestions = []
    return collection.suggestions


def find_questions(collection: Collection) -> list[dict[str, Any]]:
    """Three questions of different relations, those with the most new answers among the first ten.

    The graph already has some answers to each question, so that a reader can judge the new ones.
    """
    known, relations, prepared = collection.known, len(collection.relations), collection.prepared[0]
    if not len(known.keys):
        return []
    subjects, rows = np.divmod(known.keys, 2 * relations)
    counts = np.diff(known.offsets)
    ordering = np.isin(rows % relations, list(collection.hierarchy.ordering))
    few = (counts >= ANSWERS[0]) & (counts <= ANSWERS[1])
    telling = next(chosen for chosen in (ordering & few, few, counts > 0) if chosen.any())
    candidates = np.flatnonzero(telling)
    candidates = candidates[np.argsort(-collection.importance[subjects[candidates]], kind="stable")]
    found: list[tuple[int, float, int]] = []
    for row in np.unique(rows[candidates]).tolist():
        own = candidates[rows[candidates] == row][:LOOKED_AT]
        best = prepared.answers.best(subjects[own], rows[own], 10)
        likely = (best.scores > 0) & (best.entities >= 0)
        new, known = (likely & (best.splits < 0)).sum(1), (best.splits >= 0).sum(1)
        worth = np.minimum(new, 3) * known * collection.importance[subjects[own]]
        at = int(worth.argmax())
        found.append((int(own[at]), float(worth[at]), row % relations))
    chosen: dict[int, int] = {}
    for key, _, relation in sorted(found, key=lambda one: -one[1]):
        chosen.setdefault(relation, key)
    return [_question(collection, int(subjects[key]), int(rows[key])) for key in list(chosen.values())[:SUGGESTED]]


def _question(collection: Collection, entity: int, row: int) -> dict[str, Any]:
    heads, relation = divmod(row, len(collection.relations))
    return {
        "entity": collection.entities.reference(entity),
        "relation": collection.relations.reference(relation),
        "direction": "head" if heads else "tail",
    }
