"""The facts about one entity: those in the graph, and likely new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from murp.explorer.collection import Collection, PreparedRun
from murp.graph import Indices, split_names

KNOWN_FACTS = 12  # shown of one relation; an entity may have thousands
LIKELY = 5  # shown of an entity
EACH = 3  # looked at of one relation


@dataclass(frozen=True, eq=False)
class LikelyFacts:
    """New facts about n entities: ``rows`` 0 … 2R-1, ``objects``, ``scores`` and ``places`` (n, k), best first.

    ``places`` are those among the new answers to their question. Where there are fewer than k, the object is -1.
    """

    rows: Indices
    objects: Indices
    scores: NDArray[np.float64]
    places: Indices


def likely(prepared: PreparedRun, entities: Indices, k: int = LIKELY) -> LikelyFacts:
    """The ``k`` likeliest facts of each entity (n) that no split states.

    Only relations that the entity already has in the graph, in the same direction, are used: other relations may make
    no sense for it.
    """
    known = prepared.answers.known
    relations = 2 * prepared.run.graph.num_relations
    subjects, rows = np.divmod(known.keys, relations)
    chosen = np.isin(subjects, entities)
    subjects, rows = subjects[chosen], rows[chosen]
    best = prepared.answers.best(subjects, rows, EACH, new_only=True)
    width = best.entities.shape[1]
    places = np.broadcast_to(np.arange(1, width + 1), best.entities.shape)
    flat = [
        np.repeat(subjects, width),
        np.repeat(rows, width),
        best.entities.ravel(),
        best.scores.ravel(),
        places.ravel(),
    ]
    order = np.lexsort((-flat[3], flat[0]))
    owner, row, found, scores, place = (column[order] for column in flat)
    among = np.arange(len(owner)) - np.searchsorted(owner, owner)  # its place among its owner's
    at = np.searchsorted(np.sort(entities), owner)
    back = np.argsort(entities, kind="stable")[at] if len(entities) else at
    kept = (among < k) & (found >= 0) & np.isfinite(scores)
    made = LikelyFacts(*(np.full((len(entities), k), fill) for fill in (0, -1, 0.0, 0)))
    for table, column in zip(
        (made.rows, made.objects, made.scores, made.places), (row, found, scores, place), strict=True
    ):
        table[back[kept], among[kept]] = column[kept]
    return made


def probabilities(prepared: PreparedRun, facts: LikelyFacts) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Of likely facts, (n, k): the model's own, and the calibrated ones where the run is calibrated."""
    own: NDArray[np.float64] = torch.sigmoid(torch.from_numpy(facts.scores)).numpy()
    if prepared.calibration is None:
        return own, None
    return own, np.asarray(prepared.calibration.probability(facts.scores, np.maximum(facts.places, 1)))


def likely_of(collection: Collection, prepared: PreparedRun, entity: int) -> list[dict[str, Any]]:
    """The likely facts of one entity as an answer tells them."""
    found = likely(prepared, np.array([entity]))
    own, calibrated = probabilities(prepared, found)
    return [
        {
            **_asked(collection, int(found.rows[0, i])),
            **collection.entities.reference(int(other)),
            "probability": float(own[0, i]),
            "calibrated": None if calibrated is None else float(calibrated[0, i]),
        }
        for i, other in enumerate(found.objects[0])
        if other >= 0
    ]


def known_facts_of(collection: Collection, entity: int) -> list[dict[str, Any]]:
    """The known facts of one entity, relation by relation, each with its split; trained ones first."""
    known, relations = collection.known, len(collection.relations)
    starts, ends = known.ranges(np.full(2 * relations, entity), np.arange(2 * relations))
    groups = []
    for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        if start == end:
            continue
        objects, splits = known.objects[start:end], known.splits[start:end]
        weight = collection.entities.weights[objects]
        order = np.lexsort((-weight, splits))[:KNOWN_FACTS]
        told = zip(objects[order].tolist(), split_names(splits[order]), strict=True)
        facts = [{**collection.entities.reference(other), "known": split} for other, split in told]
        groups.append({**_asked(collection, row), "total": end - start, "facts": facts})
    return sorted(groups, key=lambda group: -group["total"])


def _asked(collection: Collection, row: int) -> dict[str, Any]:
    """The relation of a row, and whether the others are its tails or its heads."""
    heads, relation = divmod(row, len(collection.relations))
    return {"relation": collection.relations.reference(relation), "side": "head" if heads else "tail"}


def supports(
    collection: Collection, prepared: PreparedRun, given: int, row: int, answer: int, k: int
) -> list[dict[str, Any]]:
    """Why an answer: the known facts of the same relation whose entities are nearest to its entities.

    A fact (s, r, o) supports (given, r, answer) if s is near the given entity and o is near the answer: facts are
    sorted by the sum of the two distances.
    """
    heads, relation = divmod(row, len(collection.relations))
    facts = collection.graph.train[collection.graph.train[:, 1] == relation]
    subjects, objects = (facts[:, 2], facts[:, 0]) if heads else (facts[:, 0], facts[:, 2])
    from murp.prediction.nearest import distances_from

    near_given, near_answer = (distances_from(prepared.model, entity).cpu().numpy() for entity in (given, answer))
    apart = near_given[subjects] + near_answer[objects]
    order = np.argsort(apart, kind="stable")
    order = order[~((subjects[order] == given) & (objects[order] == answer))][:k]
    names = collection.entities
    pairs = facts[order]
    return [
        {"head": names.reference(int(h)), "tail": names.reference(int(t)), "distance": float(apart[i])}
        for i, (h, t) in zip(order, pairs[:, [0, 2]], strict=True)
    ]
