"""A model's metrics on one split of a graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from murp.errors import ConfigError, DataError, NotFiniteError
from murp.evaluation.constrained import Constrained
from murp.evaluation.metrics import HITS, Report
from murp.evaluation.ranks import Counting, Protocol, Scorer, queries_of, rank
from murp.evaluation.sampled import intervals, sampled_ranks
from murp.graph import SPLITS, KnowledgeGraph, KnownFacts, Split, Triples
from murp.graph.types import Types
from murp.models import Model
from murp.settings import LARGEST


def evaluate(
    model: Scorer,
    graph: KnowledgeGraph,
    split: Split = "test",
    protocol: Protocol = "standard",
    *,
    candidates: int | None = None,
    seed: int = 0,
    known: KnownFacts | None = None,
    memory: int | None = None,
    counting: Counting | None = None,
) -> Report:
    """Rank both directions of every triple of ``split`` among all entities, filtered by all known facts.

    Protocol ``types`` is ``standard``, but answers that the types learned from train refuse are ranked after all others
    (:mod:`murp.graph.types`). Protocol ``sampled`` ranks among ``candidates`` drawn by ``seed`` for each question
    (:mod:`murp.evaluation.sampled`). ``known`` (:func:`known_answers`) avoids a search when a split is evaluated often.
    ``memory`` limits the bytes of the work, ``counting`` is for a model on many ranks (see
    :func:`murp.evaluation.ranks.rank`, which also defines ``standard`` and ``paper``).
    """
    check_candidates(protocol, candidates, seed)
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
    if counting is None and isinstance(model, Model):
        refuse_broken(model)
    relations, unseen = graph.num_relations, _has_unseen_entity(graph, triples)
    relation_ids = {int(relation): graph.relations.id(relation) for relation in np.unique(triples[:, 1])}
    known = known_answers(graph, split) if known is None else known
    if candidates is None:
        scorer: Scorer = model
        ranked_by: Protocol = protocol
        if protocol == "types":
            scorer, ranked_by = Constrained(model, Types(graph)), "standard"
        found = rank(
            scorer, triples, known, num_relations=relations, protocol=ranked_by, memory=memory, counting=counting
        )
        return Report.of(replace(found, protocol=protocol), split, relation_ids, unseen)
    if not isinstance(model, Model):
        raise ConfigError("protocol sampled scores single candidates, which a model of murp can and this one cannot.")
    ranks = sampled_ranks(
        model, triples, known, num_relations=relations, candidates=candidates, seed=seed, counting=counting
    )
    return replace(Report.of(ranks, split, relation_ids, unseen), intervals=intervals(ranks, HITS))


def refuse_broken(model: Model) -> None:
    """Raise if a row is not a point of its space."""
    if broken := model.broken():
        raise NotFiniteError(
            f"the model holds NaN, infinity or points outside the ball in {', '.join(broken)}. Its training diverged: "
            "train again with a lower learning rate, or use another checkpoint."
        )


def known_answers(graph: KnowledgeGraph, split: Split) -> KnownFacts:
    """The known answers to the questions of a split, in both directions: all that ranking needs to know of the facts.

    Those of train are nearly all facts, which are sorted sooner than searched for.
    """
    if split == "train":
        return KnownFacts.of(graph)
    subjects, asked, _ = queries_of(graph.split(split), graph.num_relations)
    return KnownFacts.of_questions(graph, subjects, asked)


def check_candidates(protocol: Protocol, candidates: int | None, seed: int) -> None:
    """Raise unless candidates are given for protocol ``sampled``, and only for it."""
    if protocol == "sampled":
        if candidates is None:
            raise ConfigError(
                "protocol sampled needs the number of candidates for each question: --candidates 1000 "
                "(in Python candidates=1000). Its metrics depend on it, so there is no default."
            )
        if type(candidates) is not int or candidates < 1:
            raise ConfigError(f"candidates must be a whole number of at least 1, not {candidates!r}.")
        if type(seed) is not int or not 0 <= seed <= LARGEST:
            raise ConfigError(f"seed must be a whole number from 0 to {LARGEST}, not {seed!r}.")
    elif candidates is not None:
        raise ConfigError(
            f"candidates belong to protocol sampled; {protocol} ranks among all entities. Leave one of them out."
        )


def _has_unseen_entity(graph: KnowledgeGraph, triples: Triples) -> NDArray[np.bool_]:
    """(n, 3) → (n): whether head or tail occurs in no training triple."""
    seen = np.zeros(graph.num_entities, dtype=bool)
    seen[graph.train[:, [0, 2]]] = True
    return ~(seen[triples[:, 0]] & seen[triples[:, 2]])
