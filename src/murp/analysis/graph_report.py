"""How hierarchical a graph is: every relation's profile, δ, and advice on the geometry."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from murp.analysis.advice import Advice, advise, advise_on_relation
from murp.analysis.hyperbolicity import Hyperbolicity, hyperbolicity
from murp.analysis.relations import RelationProfile, profile, relation_edges, relation_profiles
from murp.graph import KnowledgeGraph
from murp.graph.shape import shape
from murp.recipes import Choice, decide
from murp.rows import Tabular

DIMENSION = 40  # to advise on where none is given


@dataclass(frozen=True)
class GraphReport(Tabular):
    """Of a graph, or of one relation of it. As a table: a row for each relation."""

    name: str
    relations: tuple[RelationProfile, ...]
    hyperbolicity: Hyperbolicity | None
    advice: Advice
    recipe: Choice | None  # what recipe auto takes; None if one relation is looked at

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "name": self.name,
            "relations": [profile_dict(one) for one in self.relations],
            "hyperbolicity": None if self.hyperbolicity is None else dataclasses.asdict(self.hyperbolicity),
            "advice": dataclasses.asdict(self.advice),
            "recipe": None if self.recipe is None else dataclasses.asdict(self.recipe),
        }

    def columns(self) -> dict[str, list[Any]]:
        rows = [profile_dict(one) for one in self.relations]
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def profile_dict(one: RelationProfile) -> dict[str, Any]:
    """A profile with what follows from it."""
    return dataclasses.asdict(one) | {"hierarchical": one.hierarchical}


def graph_report(
    graph: KnowledgeGraph, *, relation: str | None = None, dim: int = DIMENSION, seed: int = 0
) -> GraphReport:
    """Over train, valid and test together; ``relation``, by id or name: only this relation.

    ``dim`` is the dimension for the advice, ``seed`` draws the sample for δ.
    """
    if relation is None:
        profiles = relation_profiles(graph)
        curved = hyperbolicity(graph.facts()[:, [0, 2]].astype(np.int64), seed=seed)
        return GraphReport(graph.name, tuple(profiles), curved, advise(profiles, curved, dim), decide(shape(graph)))
    number = graph.relations.find(relation)
    edges = relation_edges(graph)[number]
    only, curved = profile(graph.relations.id(number), edges), hyperbolicity(edges, seed=seed)
    return GraphReport(graph.name, (only,), curved, advise_on_relation(only, curved, dim), None)
