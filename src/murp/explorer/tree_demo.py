"""The tree of `murp demo`: a run whose points are a layout of a tree, with a snapshot of the layout after each step."""

from __future__ import annotations

import json
import math
import tempfile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from murp import models
from murp.config import Config
from murp.explorer.snapshots import ENTITIES, FOLDER, SLIDERS, dimension_file
from murp.explorer.tree import Hierarchy, Tree
from murp.geometry import PoincareBall
from murp.graph import KnowledgeGraph, Vocabulary
from murp.hierarchy import Reconstruction, Taxonomy, embed, reconstruct, reconstruction
from murp.hierarchy.tree_layout import by_levels
from murp.projection import Points
from murp.runs import folder
from murp.training.progress import Silent

STEP = 0.62  # hyperbolic distance from a level to the next
STEPS = 8  # pictures a level
CURVATURES = (0.0, 0.25, 1.0, 4.0, 9.0)
FLAT = 1e-4
DIMENSIONS = (2, 3, 5, 10)
RIM = 0.96  # where nearly the farthest point of an embedding is drawn
EPOCHS = 20  # of the embeddings, which begin near where they end
Places = NDArray[np.float64]


def branch_of(graph: KnowledgeGraph, root: str) -> KnowledgeGraph:
    """The part of a graph's hierarchy below one entity, as a graph of one relation: child → parent."""
    hierarchy = Hierarchy.of(graph)
    order = np.argsort(hierarchy.rank[hierarchy.children], kind="stable")
    parent: dict[int, int] = {}
    inside = {graph.entities.find(root)}
    for child, above in zip(hierarchy.children[order].tolist(), hierarchy.parents[order].tolist(), strict=True):
        if above in inside and child not in inside:
            inside.add(child)
            parent[child] = above
    members = sorted(inside)
    index = {entity: i for i, entity in enumerate(members)}
    entities = Vocabulary(
        "entity",
        [graph.entities.id(i) for i in members],
        [graph.entities.name(i) for i in members],
        [graph.entities.gloss(i) for i in members],
    )
    facts = np.array([(index[child], 0, index[above]) for child, above in parent.items()], dtype=np.int32)
    none = np.empty((0, 3), dtype=np.int32)
    name = f"{graph.name}: {graph.entities.name(graph.entities.find(root))}"
    return KnowledgeGraph(name, entities, Vocabulary("relation", ["is_a"]), facts, none, none)


def grow(graph: KnowledgeGraph, path: Path) -> None:
    """Write a run of two dimensions whose points are a layout, with pictures of the tree as it grows.

    Beside them lies what the sliders of its page show: :func:`compare`.
    """
    hierarchy = Hierarchy.of(graph)
    levels = int(hierarchy.rank.max(initial=0))
    config = Config(dim=2, epochs=max(levels * STEPS, 1), data=graph.name, dtype="float64")
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    tree = Tree(hierarchy, model)
    places = by_levels(tree.parent, STEP)
    model.parameters["entity"][:] = torch.from_numpy(places)
    folder.create(path, config, graph, model, {"epoch": config.epochs, "best_mrr": None, "best_epoch": None}, "layout")
    pictures = path / FOLDER
    pictures.mkdir()
    order = np.argsort(-tree.below, kind="stable")
    np.save(pictures / ENTITIES, order)
    for step in range(config.epochs + 1):
        np.save(pictures / f"{step:06d}.npy", grown(tree, places, step / STEPS)[order].astype(np.float32))
    compare(Taxonomy.of(graph), places, pictures, order)


def compare(taxonomy: Taxonomy, places: Places, pictures: Path, order: NDArray[np.int64]) -> None:
    """How well the tree can be read from points: from the layout in spaces of several curvatures, and from Poincaré
    embeddings of several dimensions, whose pictures are written too. All by one measure, that of a reconstruction."""
    pairs = taxonomy.closure()
    curvatures = [
        {"curvature": c, **_figures(reconstruct(PoincareBall(), curved(places, c), pairs))} for c in CURVATURES
    ]
    dimensions: list[dict[str, float]] = []
    for dim in DIMENSIONS:
        with tempfile.TemporaryDirectory() as scratch:
            run = embed(taxonomy, out=Path(scratch) / "run", dim=dim, epochs=EPOCHS, progress=Silent())
            rows = run.model.parameters["entity"]
            seen = Points(PoincareBall(), rows).around(torch.zeros_like(rows[0]), near=None)
            dimensions.append({"dim": dim, **_figures(reconstruction(run))})
        # All but a few points would lie on the rim: distances from the middle are drawn shorter.
        shorter = 2 * math.atanh(RIM) / float(np.quantile(seen.distances, 0.99))
        dimensions[-1]["drawn"] = round(shorter, 3)
        np.save(pictures / dimension_file(dim), curved(seen.positions, shorter**2)[order].astype(np.float32))
    (pictures / SLIDERS).write_text(json.dumps({"curvatures": curvatures, "dimensions": dimensions}), encoding="utf-8")


def curved(places: Places, curvature: float) -> Places:
    """The same layout with its levels as far apart in a space of curvature -c, drawn in the unit disk: a point at the
    distance d from the middle is at √c d. Flat is c = 0: the smallest that numbers can still tell apart from it."""
    radius = np.linalg.norm(places, axis=1, keepdims=True)
    new = np.tanh(math.sqrt(max(curvature, FLAT)) * np.arctanh(radius))
    found: Places = places * (new / np.maximum(radius, 1e-300))
    return found


def _figures(found: Reconstruction) -> dict[str, float]:
    return {"map": round(found.map, 4), "mean_rank": round(found.mean_rank, 2)}


def grown(tree: Tree, places: Places, level: float) -> Places:
    """(N, 2) when the tree has grown to a level: who stands below it is still where its ancestor at that level is."""
    rank, parent = tree.hierarchy.rank, tree.parent
    found = places.copy()
    for depth in range(1, int(rank.max(initial=0)) + 1):
        members = np.flatnonzero((rank == depth) & (parent >= 0))
        share = float(np.clip(level - (depth - 1), 0, 1))
        found[members] = found[parent[members]] + share * (places[members] - found[parent[members]])
    return found
