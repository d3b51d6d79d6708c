"""The most probable facts that a graph does not state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from murp.errors import ConfigError
from murp.graph import Indices, KnowledgeGraph, KnownFacts
from murp.models import Model
from murp.prediction.answers import Answers
from murp.prediction.calibration import Calibration
from murp.prediction.probability import Floats, sigmoid
from murp.prediction.results import ids, names

Heads = Literal["seen", "all"]

_CELLS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Discoveries:
    """New facts of one relation, best first: heads (m), tails (m), scores (m), places among the new of a head (m)."""

    relation: int
    heads: Indices
    tails: Indices
    scores: Floats
    places: Indices


def heads_of(graph: KnowledgeGraph, relation: int, which: Heads) -> Indices:
    """The entities that are asked about: every one, or those some split states as a head of the relation."""
    if which == "all":
        return np.arange(graph.num_entities)
    facts = graph.facts()
    return np.unique(facts[facts[:, 1] == relation, 0]).astype(np.int64)


def discover(
    model: Model,
    graph: KnowledgeGraph,
    relation: int,
    k: int = 100,
    *,
    heads: Heads = "seen",
    known: KnownFacts | None = None,
    memory: int | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> Discoveries:
    """The ``k`` best-scored facts (s, relation, o) that no split states, over the chosen heads and all tails.

    A fact of an entity with itself is left out unless the relation has such facts. All pairs are scored, a batch at a
    time, and only the best so far are kept. ``known`` saves preparing the facts again, ``advance`` is told how many
    more heads are done.
    """
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    answers = Answers(model, graph, known)
    asked = heads_of(graph, relation, heads)
    size = max(1, _CELLS_AT_ONCE // min(k, graph.num_entities))
    found_heads, tails, places, scores = *np.zeros((3, 0), np.int64), np.zeros(0)
    for start in range(0, len(asked), size):
        batch = asked[start : start + size]
        best = answers.best(batch, np.full_like(batch, relation), k, new_only=True, memory=memory)
        there = best.entities >= 0
        row, place = np.nonzero(there)
        found_heads, places = np.append(found_heads, batch[row]), np.append(places, place + 1)
        tails, scores = np.append(tails, best.entities[there]), np.append(scores, best.scores[there])
        kept = np.lexsort((tails, found_heads, -scores))[:k]
        found_heads, tails, places, scores = found_heads[kept], tails[kept], places[kept], scores[kept]
        advance(len(batch))
    return Discoveries(relation, found_heads, tails, scores, places)


def schema(*, calibrated: bool) -> pa.Schema:
    """The columns of a file of discoveries."""
    text = pa.large_string()
    columns = {"relation": text, "rank": pa.int64(), "head": text, "tail": text, "head_name": text, "tail_name": text}
    columns |= {"score": pa.float64(), "probability": pa.float64()}
    return pa.schema({**columns, "calibrated": pa.float64()} if calibrated else columns)


def table_of(graph: KnowledgeGraph, found: Discoveries, calibration: Calibration | None) -> pa.Table:
    """One row a fact."""
    columns = {
        "relation": ids(graph.relations, np.full(len(found.heads), found.relation)),
        "rank": np.arange(1, len(found.heads) + 1),
        "head": ids(graph.entities, found.heads),
        "tail": ids(graph.entities, found.tails),
        "head_name": names(graph.entities, found.heads),
        "tail_name": names(graph.entities, found.tails),
        "score": found.scores,
        "probability": sigmoid(found.scores),
    }
    if calibration is not None:
        columns["calibrated"] = calibration.probability(found.scores, found.places)
    return pa.table(columns, schema=schema(calibrated=calibration is not None))
