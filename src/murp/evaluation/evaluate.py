"""A model's metrics on one split of a graph."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from murp.errors import ConfigError, DataError, NotFiniteError
from murp.evaluation.candidate_files import check_new, writing
from murp.evaluation.candidates import Digest, Part, Questions, drawn
from murp.evaluation.constrained import Constrained
from murp.evaluation.metrics import Report
from murp.evaluation.ranks import Counting, Protocol, Ranks, Sample, Scorer, queries_of, rank
from murp.evaluation.sampled import batch_size, sampled_ranks
from murp.evaluation.stored_candidates import Stored
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
    save_candidates: Path | None = None,
    candidates_from: Path | None = None,
    known: KnownFacts | None = None,
    memory: int | None = None,
    counting: Counting | None = None,
) -> Report:
    """Rank both directions of every triple of ``split`` among all entities, filtered by all known facts.

    Protocol ``types`` is ``standard``, but answers that the types learned from train refuse are ranked after all others
    (:mod:`murp.graph.types`). Protocol ``sampled`` ranks among ``candidates`` drawn by ``seed`` for each question
    (:mod:`murp.evaluation.sampled`), and writes them into the file ``save_candidates``; or among those of the file
    ``candidates_from`` (:mod:`murp.evaluation.candidate_files`). ``known`` (:func:`known_answers`) avoids a search when
    a split is evaluated often. ``memory`` limits the bytes of the work, ``counting`` is for a model on many ranks (see
    :func:`murp.evaluation.ranks.rank`, which also defines ``standard`` and ``paper``).
    """
    check_candidates(protocol, candidates, seed, save_candidates, candidates_from)
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
    if protocol != "sampled":
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
    questions = Questions(graph, triples, known)
    ranks = _ranks_among(model, triples, questions, candidates, seed, save_candidates, candidates_from, counting)
    return Report.of(ranks, split, relation_ids, unseen)


def _ranks_among(
    model: Model,
    triples: Triples,
    questions: Questions,
    candidates: int | None,
    seed: int,
    save: Path | None,
    source: Path | None,
    counting: Counting | None,
) -> Ranks:
    """Ranks among candidates, drawn or from the file ``source``; these may be written into the file ``save``."""
    digest = Digest(questions)
    if candidates is None:
        assert source is not None
        stored = Stored(source)
        parts, sample = stored.parts(questions, batch_size(model, stored.candidates)), stored.sample
    else:
        count = min(candidates, model.num_entities)
        parts, sample = drawn(questions, count, seed, batch_size(model, count)), partial(Sample, candidates, seed)
    with contextlib.nullcontext() if save is None else writing(save, questions) as writer:

        def noted() -> Iterator[Part]:
            for which, of in parts:
                digest.add(which, of)
                if writer is not None:
                    writer.add(which, of)
                yield which, of

        found = sampled_ranks(model, triples, noted(), num_relations=questions.graph.num_relations, counting=counting)
        found = replace(found, sample=sample(str(digest)))
        if writer is not None:
            assert found.sample is not None
            writer.sign(found.sample)
    return found


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


def check_candidates(
    protocol: Protocol, candidates: int | None, seed: int, save: Path | None = None, source: Path | None = None
) -> None:
    """Raise unless candidates, or a file of them, are given for protocol ``sampled``, and only for it."""
    if protocol != "sampled":
        if candidates is not None or save is not None or source is not None:
            raise ConfigError(
                f"candidates belong to protocol sampled; {protocol} ranks among all entities. Leave one of them out."
            )
        return
    if source is not None:
        if candidates is not None or save is not None or seed != 0:
            raise ConfigError(
                f"the candidates are those of {source}: leave out --candidates, --seed and --save-candidates."
            )
        return
    if candidates is None:
        raise ConfigError(
            "protocol sampled needs the number of candidates for each question: --candidates 1000 "
            "(in Python candidates=1000). Its metrics depend on it, so there is no default. Or name a file that has "
            "candidates: --candidates-from."
        )
    if type(candidates) is not int or candidates < 1:
        raise ConfigError(f"candidates must be a whole number of at least 1, not {candidates!r}.")
    if type(seed) is not int or not 0 <= seed <= LARGEST:
        raise ConfigError(f"seed must be a whole number from 0 to {LARGEST}, not {seed!r}.")
    if save is not None:
        check_new(save)


def _has_unseen_entity(graph: KnowledgeGraph, triples: Triples) -> NDArray[np.bool_]:
    """(n, 3) → (n): whether head or tail occurs in no training triple."""
    seen = np.zeros(graph.num_entities, dtype=bool)
    seen[graph.train[:, [0, 2]]] = True
    return ~(seen[triples[:, 0]] & seen[triples[:, 2]])
