"""The most probable answers to (head, relation, ?) and (?, relation, tail)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from murp.errors import ConfigError, NotFiniteError
from murp.graph import SPLITS, KnowledgeGraph, Split
from murp.models import Model
from murp.prediction.calibration import Calibration


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

    With ``new_only`` those of facts that the graph states are left out.
    Heads are asked for through the reciprocal relation, as in training and evaluation.
    """
    if (head is None) == (tail is None):
        raise ConfigError("give either a head or a tail, not both: the other one is what is predicted.")
    if k < 1:
        raise ConfigError(f"k must be at least 1, not {k}.")
    r = graph.relations.find(relation)
    given = graph.entities.find(head if head is not None else tail or "")
    row = r if head is not None else r + graph.num_relations
    query = (torch.tensor([given], device=model.device), torch.tensor([row], device=model.device))
    scores = model.score_objects(*query)[0].double().cpu()
    if not scores.isfinite().all():
        raise NotFiniteError(
            f"the model gives NaN or infinite scores to ({graph.entities.label(given)}, {relation}). It diverged: "
            "train again with a lower learning rate, or use another checkpoint."
        )
    known = _stated(graph, given, r, heads=tail is not None)
    if new_only:
        scores[list(known)] = -torch.inf
    best = torch.topk(scores, min(k, len(scores) - new_only * len(known)))
    calibrated = [None] * k if calibration is None else calibration.probability(best.values.numpy()).tolist()
    return [
        Prediction(
            rank=rank,
            id=graph.entities.id(entity),
            name=graph.entities.name(entity),
            score=score,
            probability=float(torch.sigmoid(torch.tensor(score, dtype=torch.float64))),
            known=known.get(entity),
            calibrated=calibrated[rank - 1],
        )
        for rank, (score, entity) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True), start=1)
    ]


def _stated(graph: KnowledgeGraph, given: int, relation: int, *, heads: bool) -> dict[int, Split]:
    """Entities in the open place of known facts, with the first split that states each."""
    fixed, open_ = (2, 0) if heads else (0, 2)
    stated: dict[int, Split] = {}
    for split in SPLITS:
        triples = graph.split(split)
        rows = triples[(triples[:, fixed] == given) & (triples[:, 1] == relation)]
        for entity in rows[:, open_].tolist():
            stated.setdefault(entity, split)
    return stated
