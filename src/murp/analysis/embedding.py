"""How an embedding represents a graph's hierarchies: norms against depth and biases, hits against Krackhardt scores."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from murp.analysis.correlation import Correlation, spearman
from murp.analysis.depth import Levels, find_levels
from murp.analysis.graph_report import profile_dict
from murp.analysis.relations import RelationProfile, profile, relation_edges
from murp.errors import NotFiniteError
from murp.evaluation import Protocol
from murp.graph import Split
from murp.rows import Tabular
from murp.runs import Run


@dataclass(frozen=True)
class RelationFit:
    """One relation: its profile, the rank correlation of depth with norm, and how well it is predicted.

    ``hits`` is Hits@10 over ``queries`` of the report's split; None if the split has no fact of it.
    """

    profile: RelationProfile
    depth_and_norm: Correlation
    hits: float | None
    queries: int


@dataclass(frozen=True)
class EmbeddingReport(Tabular):
    """Rank correlations over a run; ``split`` and ``protocol`` are those of the hits.

    ``norm_and_bias`` has ``subject_bias`` and ``object_bias``, those the model has. ``score_and_hits`` is over
    the relations that have both.
    """

    split: Split
    protocol: Protocol
    relations: tuple[RelationFit, ...]
    norm_and_bias: dict[str, Correlation]
    score_and_hits: Correlation

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        found = dataclasses.asdict(self)
        for fit, one in zip(found["relations"], self.relations, strict=True):
            fit["profile"] = profile_dict(one.profile)
        return found

    def columns(self) -> dict[str, list[Any]]:
        """A row for each relation: its profile, ρ of depth with norm over n entities, and Hits@10."""
        rows = [
            {**profile_dict(fit.profile), "rho": fit.depth_and_norm.rho, "n": fit.depth_and_norm.n, "hits@10": fit.hits}
            | {"queries": fit.queries}
            for fit in self.relations
        ]
        return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def embedding_report(run: Run, *, split: Split = "test", protocol: Protocol = "standard") -> EmbeddingReport:
    """Compare the hierarchies of the graph with what the model learned.

    Depth is counted in the relation's graph over all splits, in edges from the nearest root, cycles as one node
    (:class:`murp.analysis.depth.Levels`); the norm is that of an entity's point, which in the ball orders entities as
    their distance from the origin does. Entities that are not in train are left out: their points are still at their
    random initial values.
    """
    by_relation = run.evaluate(split, protocol).by_relation
    fits = []
    for relation, edges in enumerate(relation_edges(run.graph)):
        name, levels = run.graph.relations.id(relation), find_levels(edges)
        metrics = by_relation.get(name)
        hits, queries = (None, 0) if metrics is None else (metrics.hits[10], metrics.queries)
        fits.append(RelationFit(profile(name, edges), depth_and_norm(run, levels), hits, queries))
    norms, seen = entity_norms(run), _seen(run)
    biases: dict[str, Correlation] = {
        name: spearman(norms[seen], run.model.parameters[name].double().cpu().numpy()[seen])
        for name in ("subject_bias", "object_bias")
        if name in run.model.parameters
    }
    both = [(fit.profile.krackhardt, fit.hits) for fit in fits if fit.hits is not None]
    scores, hits_of = zip(*both, strict=True) if both else ((), ())
    return EmbeddingReport(split, protocol, tuple(fits), biases, spearman(scores, hits_of))


def depth_and_norm(run: Run, levels: Levels) -> Correlation:
    """The rank correlation of depth with norm; 1 means: the deeper, the further from the origin."""
    trained = _seen(run)[levels.nodes]
    return spearman(levels.depth[trained], entity_norms(run)[levels.nodes[trained]])


def entity_norms(run: Run) -> NDArray[np.float64]:
    """(N,) the norm of each entity's point."""
    norms: NDArray[np.float64] = torch.linalg.vector_norm(run.model.parameters["entity"].double(), dim=-1).cpu().numpy()
    if not np.isfinite(norms).all():
        raise NotFiniteError(
            f"{run.path}: the points of some entities are not finite. Its training diverged: train again with a lower "
            "learning rate, or use another checkpoint."
        )
    return norms


def _seen(run: Run) -> NDArray[np.bool_]:
    seen = np.zeros(run.graph.num_entities, dtype=np.bool_)
    seen[run.graph.train[:, [0, 2]]] = True
    return seen
