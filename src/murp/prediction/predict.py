"""The most probable answers to (head, relation, ?) and (?, relation, tail)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from murp.errors import ConfigError, NotFiniteError
from murp.graph import KnowledgeGraph, KnownFacts, Split, relations_with_loops, split_names
from murp.models import Model
from murp.prediction.arguments import count, identifier
from murp.prediction.calibration import Calibration
from murp.prediction.candidates import places_among_new


@dataclass(frozen=True)
class Prediction:
    """One answer: the entity, its score φ, the probability σ(φ), and the split that already states the fact.

    ``calibrated`` is the probability by the run's calibration, where it has one.
    """

    rank: int
    id: str
    name: str
    score: float
    probability: float
    known: Split | None
    calibrated: float | None = None


def predict(
    model: Model,
    graph: KnowledgeGraph,
    *,
    relation: str,
    head: str | None = None,
    tail: str | None = None,
    k: int = 10,
    new_only: bool = False,
    calibration: Calibration | None = None,
) -> list[Prediction]:
    """The ``k`` best-scored entities for the open place, best first; names or ids are looked up in the graph.

    With ``new_only`` those of facts that the graph states are left out, and always the given entity itself unless the
    relation has facts of an entity with itself.
    Heads are asked for through the reciprocal relation, as in training and evaluation.
    """
    if head is None and tail is None:
        raise ConfigError("give a head or a tail: the other one is what is predicted.")
    if head is not None and tail is not None:
        raise ConfigError("give either a head or a tail, not both: the other one is what is predicted.")
    k = count("k", k)
    r = graph.relations.find(identifier("relation", relation))
    given = graph.entities.find(identifier("tail", tail) if head is None else identifier("head", head))
    row = r if head is not None else r + graph.num_relations
    query = (torch.tensor([given], device=model.device), torch.tensor([row], device=model.device))
    scores = model.score_objects(*query)[0].double().cpu()
    if not scores.isfinite().all():
        raise NotFiniteError(
            f"the model gives NaN or infinite scores to ({graph.entities.label(given)}, {relation}). It diverged: "
            "train again with a lower learning rate, or use another checkpoint."
        )
    known = KnownFacts.of_question(graph, given, row)
    left_out = set(known.objects.tolist()) if new_only else set()
    if not relations_with_loops(graph)[r]:
        left_out.add(given)
    scores[list(left_out)] = -torch.inf
    best = torch.topk(scores, min(k, len(scores) - len(left_out)))
    splits = known.splits_of(given, row, best.indices.numpy())
    calibrated: list[float | None] = [None] * len(best.indices)
    if calibration is not None:
        calibrated = calibration.probability(best.values.numpy(), places_among_new(splits < 0)).tolist()
    return [
        Prediction(
            rank=rank,
            id=graph.entities.id(entity),
            name=graph.entities.name(entity),
            score=score,
            probability=float(torch.sigmoid(torch.tensor(score, dtype=torch.float64))),
            known=split,
            calibrated=calibrated[rank - 1],
        )
        for rank, (score, entity, split) in enumerate(
            zip(best.values.tolist(), best.indices.tolist(), split_names(splits), strict=True), start=1
        )
    ]
