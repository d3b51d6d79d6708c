"""Whether a model has learned the tree of benchmarks/scale_reading.py from facts alone.

Entity i > 0 has the parent ⌊(i - 1) / 8⌋. Three things are measured, none of which a model gets by chance:

- Relatives. For entities drawn at random, another of the same level whose nearest common ancestor is 1, 2, 3 … levels
  up. The closer the relative, the nearer its point should be.
- Order. Whether a parent is nearer to the origin than its child, as in a drawing of a tree. It is reported but
  not part of the verdict: entities with many facts may also move outwards.
- Parents. For the facts ``part_of`` in test, the rank of the parent among the candidates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray

from measure import spread
from murp.analysis.correlation import spearman
from murp.evaluation.metrics import Metrics, Report
from murp.graph import KnowledgeGraph
from murp.models import Model
from scale_reading import BRANCHES

PART_OF = "r00"
DRAWN = 100_000  # entities
# What counts as learned, see ``verdict``: about halfway between chance and perfection. Set after a trial with 20,000
# entities, which has .89 and .70, and before a run with ten million.
CLOSE, HITS = 0.75, 0.5
Numbers = NDArray[np.int64]


def relatives(model: Model, graph: KnowledgeGraph, drawn: int, seed: int = 0) -> dict[str, Any]:
    """Distances of relatives by how far up their nearest common ancestor is, and parents against children."""
    place = places(graph)
    draw = np.random.default_rng(seed)
    some = draw.integers(1, len(place), drawn)
    distances: dict[int, NDArray[np.float64]] = {}
    kept: dict[int, NDArray[np.bool_]] = {}
    level = 1
    while (reached := _up(some, level) >= 0).mean() > 0.9:  # nearly all have an ancestor so far up
        kin = relative(some, level, draw)
        there = reached & (kin < len(place)) & (kin >= 0)
        kept[level] = there
        distances[level] = np.full(drawn, np.nan)
        distances[level][there] = _distances(model, place[some[there]], place[kin[there]])
        level += 1
    norms = torch.linalg.vector_norm(model.parameters["entity"], dim=-1)
    above, below = (norms[torch.from_numpy(place[of]).to(norms.device)] for of in (_up(some, 1), some))
    levels = np.concatenate([np.full(there.sum(), level) for level, there in kept.items()])
    far = max(distances)
    both = kept[1] & kept[far]
    return {
        "entities_drawn": drawn,
        "distance_by_levels_to_the_common_ancestor": {
            str(level): spread(found[kept[level]].tolist()) for level, found in distances.items()
        },
        "spearman_of_levels_and_distance": spearman(
            levels, np.concatenate([found[kept[level]] for level, found in distances.items()])
        ).rho,
        "share_with_a_sibling_nearer_than_the_farthest_kin": float(
            (distances[1] < distances[far])[both].mean() + (distances[1] == distances[far])[both].mean() / 2
        ),
        "share_of_parents_nearer_to_the_origin": float((above < below).double().mean()),
    }


def parents(report: Report, graph: KnowledgeGraph) -> dict[str, Any]:
    """Ranks of the parent among the candidates, for the facts ``part_of`` of the split; and what chance has."""
    ranks = report.ranks
    own = ranks.tail[ranks.triples[:, 1] == graph.relations.find(PART_OF)]
    many = 1 + (ranks.sample.candidates if ranks.sample else graph.num_entities - 1)
    many = min(many, graph.num_entities)
    chance = {"mrr": float((1 / np.arange(1, many + 1)).mean()), "hits@10": min(1.0, 10 / many)}
    return {**Metrics.of(own, report.overall.protocol).to_dict(), "chance": chance}


def verdict(kin: dict[str, Any], asked: dict[str, Any]) -> bool:
    """Learned: three of four siblings nearer than the farthest kin, and half of the parents among the ten best."""
    close: float = kin["share_with_a_sibling_nearer_than_the_farthest_kin"]
    return close >= CLOSE and (asked["hits@10"] or 0.0) >= HITS


def places(graph: KnowledgeGraph) -> Numbers:
    """The row of each entity of the tree, (N): numbers are in the names."""
    numbers = pc.utf8_slice_codeunits(graph.entities.table()["id"], 1).cast(pa.int64()).to_numpy()
    found = np.empty(len(numbers), np.int64)
    found[numbers] = np.arange(len(numbers))
    return found


def relative(some: Numbers, level: int, draw: np.random.Generator) -> Numbers:
    """One of the same level with the nearest common ancestor ``level`` levels up; it may be beyond the last entity."""
    below = _up(some, level - 1)  # the ancestor's child that is not to be taken again
    ancestor = (below - 1) // BRANCHES
    other = (below - 1 - ancestor * BRANCHES + draw.integers(1, BRANCHES, len(some))) % BRANCHES
    found = ancestor * BRANCHES + 1 + other
    for _ in range(level - 1):
        found = found * BRANCHES + 1 + draw.integers(0, BRANCHES, len(some))
    return found


def _up(some: Numbers, levels: int) -> Numbers:
    """The ancestor so many levels up; negative if there is none."""
    for _ in range(levels):
        some = np.where(some > 0, (some - 1) // BRANCHES, -1)
    return some


@torch.no_grad()
def _distances(model: Model, one: Numbers, other: Numbers) -> NDArray[np.float64]:
    points = model.parameters["entity"]
    pairs = (points[torch.from_numpy(of).to(points.device)].double() for of in (one, other))
    found: NDArray[np.float64] = model.geometry.distance(*pairs).cpu().numpy()
    return found
