"""Which of two entities is higher under a relation: what the graph says, and what the embedding says."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from murp.analysis.correlation import Correlation
from murp.analysis.depth import Direction, Levels, find_levels, shortest_path
from murp.analysis.embedding import depth_and_norm, entity_norms
from murp.analysis.relations import relation_edges
from murp.errors import ConfigError
from murp.runs import Run


@dataclass(frozen=True)
class Side:
    """One of the two entities.

    ``depth`` in edges below the nearest root of the relation (None if the relation has no edge of it), ``norm``
    of its point, ``score`` φ and ``probability`` σ(φ) of (this entity, relation, the other one).
    """

    id: str
    name: str
    depth: int | None
    norm: float
    score: float
    probability: float


@dataclass(frozen=True)
class Comparison:
    """``first`` and ``second`` under ``relation``, whose edges lead ``direction`` (see :class:`Levels`).

    ``path`` holds the ids of a shortest path along the relation from one entity to the other, over all splits; empty
    if there is none. Three opinions on which one is higher, each an id, or None if it has none: ``by_graph``,
    the other lying below it on a path (paths that lead ``both_ways`` decide nothing); ``by_score``, the better scored
    of the two facts saying so; ``by_norm``, it being nearer the origin. How far norms can be trusted
    ``depth_and_norm`` says, their rank correlation under this relation in this run: near 1 where the deeper is the
    further out, near 0 where norms say nothing.
    """

    relation: str
    direction: Direction
    first: Side
    second: Side
    path: tuple[str, ...]
    both_ways: bool
    by_graph: str | None
    by_score: str | None
    by_norm: str | None
    depth_and_norm: Correlation


def compare(run: Run, first: str, second: str, relation: str) -> Comparison:
    """Compare two entities, given like the relation by id or name."""
    graph = run.graph
    pair, r = [graph.entities.find(first), graph.entities.find(second)], graph.relations.find(relation)
    if pair[0] == pair[1]:
        raise ConfigError(f"{first!r} and {second!r} are the same entity: name two.")
    edges = relation_edges(graph)[r]
    levels = find_levels(edges)
    sides = _sides(run, levels, pair, r)
    there, back = shortest_path(edges, *pair), shortest_path(edges, *pair[::-1])
    # Along an edge that leads down the head is the higher one, along one that leads up the tail.
    head_minus_tail = 1 if levels.direction == "down" else -1
    return Comparison(
        relation=graph.relations.id(r),
        direction=levels.direction,
        first=sides[0],
        second=sides[1],
        path=tuple(graph.entities.id(e) for e in there or back or ()),
        both_ways=there is not None and back is not None,
        by_graph=_larger(sides, head_minus_tail * ((there is not None) - (back is not None))),
        by_score=_larger(sides, head_minus_tail * (sides[0].score - sides[1].score)),
        by_norm=_larger(sides, sides[1].norm - sides[0].norm),
        depth_and_norm=depth_and_norm(run, levels),
    )


def _sides(run: Run, levels: Levels, pair: list[int], relation: int) -> list[Side]:
    depths = dict(zip(levels.nodes.tolist(), levels.depth.tolist(), strict=True))
    ends = torch.tensor(pair, device=run.model.device)
    scores = run.model.score(ends, torch.full_like(ends, relation), ends.flip(0)).double()
    values = zip(pair, entity_norms(run)[pair].tolist(), scores.tolist(), scores.sigmoid().tolist(), strict=True)
    names = run.graph.entities
    return [Side(names.id(e), names.name(e), depths.get(e), *figures) for e, *figures in values]


def _larger(sides: list[Side], difference: float) -> str | None:
    """The id of the first side where ``difference`` is positive, of the second where it is negative."""
    return None if difference == 0 else sides[0 if difference > 0 else 1].id
