"""The entities nearest to one of them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from murp.errors import NotFiniteError
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.models.blocks import by_row
from murp.prediction.answers import identifier
from murp.prediction.approximate import Index
from murp.rows import Rows
from murp.settings import whole_number


@dataclass(frozen=True)
class Neighbour:
    """An entity and its distance in the model's geometry."""

    rank: int
    id: str
    name: str
    distance: float


@torch.no_grad()
def distances_from(model: Model, entity: int) -> Tensor:
    """Of every entity (N), float64; equal entities are equally far."""
    points = model.parameters["entity"]
    return by_row(lambda rows: model.geometry.distance(points[entity], rows), points).double()


@torch.no_grad()
def nearest_to(model: Model, entity: int, k: int) -> list[tuple[int, float]]:
    """The ``k`` entities at the smallest distance, itself left out, or all there are: each with its distance."""
    distances = distances_from(model, entity)
    if not distances.isfinite().all():
        raise NotFiniteError(
            "distances are NaN or infinite. The model's training diverged: train again with a lower learning rate, or "
            "use another checkpoint."
        )
    distances[entity] = torch.inf
    best = torch.topk(distances, min(k, len(distances) - 1), largest=False)
    return list(zip(best.indices.tolist(), best.values.tolist(), strict=True))


def _by_index(index: Index, model: Model, entity: int, k: int) -> list[tuple[int, float]]:
    found, distances = index.nearest(model, entity, min(k, model.num_entities - 1))
    return list(zip(found.tolist(), distances.tolist(), strict=True))


def nearest(
    model: Model, graph: KnowledgeGraph, entity: str, k: int = 10, *, index: Index | None = None
) -> Rows[Neighbour]:
    """The ``k`` entities at the smallest distance from ``entity``, itself left out; with an ``index`` approximately."""
    k = whole_number("k", k)
    centre = graph.entities.find(identifier("entity", entity))
    try:
        found = nearest_to(model, centre, k) if index is None else _by_index(index, model, centre, k)
    except NotFiniteError as error:
        raise NotFiniteError(f"{graph.entities.label(centre)}: {error}") from None
    return Rows(
        Neighbour,
        (
            Neighbour(rank=rank, id=graph.entities.id(i), name=graph.entities.name(i), distance=distance)
            for rank, (i, distance) in enumerate(found, start=1)
        ),
    )
