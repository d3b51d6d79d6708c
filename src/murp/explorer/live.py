"""A training that is being watched: its progress so far, and the points after each epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.explorer.disk_scaling import DiskScaling
from murp.explorer.snapshots import Snapshots, shown_frame, snapshot_scaling
from murp.explorer.tree import Hierarchy
from murp.graph import KnowledgeGraph
from murp.models import Model, from_config
from murp.runs import folder
from murp.web.encoding import packed

MOST_RECORDS = 600  # epochs of the curves that are sent; of more, evenly chosen ones


class Live:
    """A run folder while it is being filled, and after."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = folder.read_config(path)
        self.graph: KnowledgeGraph = folder.read_graph(path)
        self.snapshots = Snapshots(path)
        self._of_drawing: Model | None = None
        self._still: dict[str, Any] | None = None

    def model(self) -> Model:
        """A model without weights: its geometry is what drawing needs."""
        if self._of_drawing is None:
            self._of_drawing = from_config(self.config, 1, max(self.graph.num_relations, 1))
        return self._of_drawing

    def about(self) -> dict[str, Any]:
        """How far training has come: the curves, and which epochs can be shown."""
        records, snapshots = folder.read_metrics(self.path), self.snapshots.epochs()
        step = max(1, -(-len(records) // MOST_RECORDS))
        kept = [r for i, r in enumerate(records) if "valid" in r or i % step == 0 or i + 1 == len(records)]
        return {
            "name": self.path.resolve().name,
            "graph": self.graph.name,
            "model": self.config.model,
            "dim": self.config.dim,
            "geometry": self.model().geometry.name,
            "epochs": self.config.epochs,
            "done": max([r["epoch"] for r in records[-1:]] + snapshots[-1:], default=0) >= self.config.epochs,
            "protocol": self.config.validated_by,
            "records": [
                {"epoch": r["epoch"], "loss": r["loss"], "mrr": r["valid"]["mrr"] if "valid" in r else None}
                for r in kept
            ],
            "snapshots": snapshots,
            "sliders": self.snapshots.sliders(),
        }

    def still(self) -> dict[str, Any]:
        """What does not change: names of the points, and the edges of the hierarchy between them."""
        if self._still is None:
            entities = self.snapshots.entities()
            hierarchy = Hierarchy.of(self.graph)
            place = np.full(self.graph.num_entities, -1)
            place[entities] = np.arange(len(entities))
            ends = np.stack([place[hierarchy.parents], place[hierarchy.children]], axis=1)
            relation = hierarchy.relation
            self._still = {
                "ids": [self.graph.entities.id(int(i)) for i in entities],
                "names": [self.graph.entities.name(int(i)) for i in entities],
                "depth": packed(np.clip(hierarchy.rank[entities], 0, 7), "uint8"),
                "relation": None if relation is None else self.graph.relations.name(relation),
                "edges": packed(ends[(ends >= 0).all(1)].reshape(-1, 2), "uint32"),
            }
        return self._still

    def frame(self, epoch: int) -> dict[str, Any]:
        """The points after an epoch, drawn in the measure of the newest."""
        scaling = snapshot_scaling(self.model(), self.snapshots.frame(self.snapshots.epochs()[-1]))
        return {"epoch": epoch, "points": packed(self.drawn(epoch, scaling), "float32"), "scale": scaling.scale}

    def embedding(self, dim: int) -> dict[str, Any]:
        """The points of a layout's entities in another number of dimensions."""
        return {"dim": dim, "points": packed(self.snapshots.embedding(dim), "float32")}

    def drawn(self, epoch: int, scaling: DiskScaling) -> NDArray[np.float64]:
        """The points (P, 2) after an epoch."""
        return shown_frame(self.model(), self.snapshots.frame(epoch), scaling)
