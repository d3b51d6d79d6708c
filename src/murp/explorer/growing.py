"""A tree that grows in the disk: a run whose points are a layout of its tree, and pictures of how it comes about."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from murp import models
from murp.config import Config
from murp.explorer.snapshots import ENTITIES, FOLDER
from murp.explorer.tree import Hierarchy, Tree
from murp.graph import KnowledgeGraph, Vocabulary
from murp.runs import folder

STEP = 0.62  # hyperbolic distance from a level to the next
STEPS = 8  # pictures a level
Places = NDArray[np.float64]


def tree_layout(tree: Tree) -> Places:
    """(N, 2) in the unit disk: a level at a time outwards, each entity in the middle of its sector.

    Edges are about as long everywhere, as the disk has room for a tree: its circles grow as fast as the levels do.
    """
    angles, rank = np.nan_to_num(tree.angles()), np.maximum(tree.hierarchy.rank, 0)
    radius = np.tanh(STEP * rank / 2)
    places: Places = radius[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return places


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
    """Write a run of two dimensions whose points are the layout, with pictures of the tree as it grows."""
    hierarchy = Hierarchy.of(graph)
    levels = int(hierarchy.rank.max(initial=0))
    config = Config(dim=2, epochs=max(levels * STEPS, 1), data=graph.name, dtype="float64")
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(0)
    tree = Tree(hierarchy, model)
    places = tree_layout(tree)
    model.parameters["entity"][:] = torch.from_numpy(places)
    folder.create(path, config, graph, model, {"epoch": config.epochs, "best_mrr": None, "best_epoch": None}, "layout")
    pictures = path / FOLDER
    pictures.mkdir()
    np.save(pictures / ENTITIES, np.argsort(-tree.below, kind="stable"))
    order = np.argsort(-tree.below, kind="stable")
    for step in range(config.epochs + 1):
        np.save(pictures / f"{step:06d}.npy", grown(tree, places, step / STEPS)[order].astype(np.float32))


def grown(tree: Tree, places: Places, level: float) -> Places:
    """(N, 2) when the tree has grown to a level: who stands below it is still where its ancestor at that level is."""
    rank, parent = tree.hierarchy.rank, tree.parent
    found = places.copy()
    for depth in range(1, int(rank.max(initial=0)) + 1):
        members = np.flatnonzero((rank == depth) & (parent >= 0))
        share = float(np.clip(level - (depth - 1), 0, 1))
        found[members] = found[parent[members]] + share * (places[members] - found[parent[members]])
    return found
