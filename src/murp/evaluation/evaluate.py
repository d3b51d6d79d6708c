"""A model's figures on one split of a graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murp.errors import ConfigError, DataError, NotFiniteError
from murp.evaluation.metrics import Report
from murp.evaluation.ranks import Counting, Protocol, Scorer, rank
from murp.graph import SPLITS, KnowledgeGraph, KnownFacts, Split, Triples
from murp.models import Model


def evaluate(
    model: Scorer,
    graph: KnowledgeGraph,
    split: Split = "test",
    protocol: Protocol = "standard",
    *,
    known: KnownFacts | None = None,
    memory: int | None = None,
    counting: Counting | None = None,
) -> Report:
    """Rank both directions of every triple of ``split`` among all entities, filtered by all known facts.

    ``known`` saves preparing the facts again when the same graph is evaluated often, ``memory`` bounds the
    bytes of the work, ``counting`` is for a model on many ranks (see :func:`murp.evaluation.ranks.rank`, which also
    defines the two protocols).
    """
    if split not in SPLITS:
        raise ConfigError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}.")
    triples = graph.split(split)
    if len(triples) == 0:
        raise DataError(
            f"{graph.name}: the {split} split has no triples, so there is nothing to evaluate. "
            "Choose another split, or add triples to its file."
        )
    if model.num_entities != graph.num_entities:
        raise DataError(
            f"{graph.name} has {graph.num_entities:,} entities and the model {model.num_entities:,}: "
            "evaluate it on the graph it was trained on."
        )
    if counting is None and isinstance(model, Model) and (broken := model.broken()):
        raise NotFiniteError(
            f"the model holds NaN, infinity or points outside the ball in {', '.join(broken)}. Its training diverged: "
            "train again with a lower learning rate, or use another checkpoint."
        )
    if known is None:
        known = KnownFacts.of(graph)
    ranks = rank(
        model, triples, known, num_relations=graph.num_relations, protocol=protocol, memory=memory, counting=counting
    )
    relation_ids = {int(relation): graph.relations.id(relation) for relation in np.unique(triples[:, 1])}
    return Report.of(ranks, split, relation_ids, _has_unseen_entity(graph, triples))


def _has_unseen_entity(graph: KnowledgeGraph, triples: Triples) -> NDArray[np.bool_]:
    """(n, 3) → (n): whether head or tail occurs in no training triple."""
    seen = np.zeros(graph.num_entities, dtype=bool)
    seen[graph.train[:, [0, 2]]] = True
    return ~(seen[triples[:, 0]] & seen[triples[:, 2]])
