"""Snapshots of a training: points of the most important entities, epoch by epoch, in the run folder.

    snapshots/entities.npy        which entities, the most important first
    snapshots/000012.npy          (P, 2) float32: their places in the unit disk after epoch 12
    snapshots/sliders.json        of a layout: how well spaces of other curvature and dimension show the same tree
    snapshots/d010.npy            the same tree embedded in 10 dimensions, as it is drawn

They are few and small (at most 160 of 16 KB): when there are more, every second one is dropped and from then on only
every second one is taken. Taking them may use at most a hundredth of the training time; otherwise they are skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.engines import Chunk
from murp.errors import ConfigError, RunError
from murp.explorer.disk_scaling import DiskScaling, find_scaling, scaled
from murp.explorer.tree import Hierarchy, Tree, importance
from murp.geometry import MobiusGeometry
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.projection import Points
from murp.training.progress import Silent
from murp.training.state import State

FOLDER = "snapshots"
ENTITIES = "entities.npy"
SLIDERS = "sliders.json"
POINTS = 2000
MOST = 160
SHARE = 0.01  # of the time of training
Places = NDArray[np.float32]


class Recorder(Silent):
    """Passes everything to another progress, and takes a snapshot after an epoch if it is time for one."""

    def __init__(self, shown: Silent) -> None:
        self.shown = shown
        self.stride = 1
        self.spent = 0.0
        self.axes: Tensor | None = None

    def watch(self, path: Path, graph: KnowledgeGraph, model: Model) -> None:
        """What is recorded; a model that cannot be drawn is refused before it is trained."""
        self.folder, self.model, self.began = path / FOLDER, model, time.monotonic()
        Points(drawable(model), model.parameters["entity"][:1].to(model.dtype))  # refuses what cannot be drawn
        facts = graph.facts()
        degree = np.bincount(facts[:, [0, 2]].ravel(), minlength=graph.num_entities)
        chosen = np.argsort(-importance(degree, Tree(Hierarchy.of(graph), model)), kind="stable")[:POINTS]
        self.chosen = torch.from_numpy(chosen).to(model.parameters["entity"].device)
        try:
            self.folder.mkdir(exist_ok=True)
            self._write(ENTITIES, chosen)
        except OSError as error:
            raise RunError(f"{self.folder} cannot be written: {error.strerror}.") from error
        self.epochs = epochs_of(path)

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        for epoch in [epoch for epoch in self.epochs if epoch > state.epoch]:
            self._drop(epoch)  # a run goes on from a checkpoint, which may be older
        self.last = epochs
        self.began = time.monotonic()
        self.shown.start(state, done, steps, epochs)
        self.begun = self.shown.begun
        if not self.epochs:
            self._take(state.epoch)

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.shown.advance(state, chunk, seconds, loss)

    def epoch(self, record: dict[str, Any]) -> None:
        self.shown.epoch(record)
        epoch = record["epoch"]
        affordable = self.spent < SHARE * (time.monotonic() - self.began)
        if epoch == self.last or (epoch % self.stride == 0 and affordable):
            self._take(epoch)

    def stop(self) -> None:
        self.shown.stop()

    @torch.no_grad()
    def _take(self, epoch: int) -> None:
        began = time.monotonic()
        rows = self.model.parameters["entity"][self.chosen].detach().cpu().to(self.model.dtype)
        points = Points(drawable(self.model), rows)
        picture = points.around(torch.zeros_like(rows[0]), near=None)
        # The plane that holds most of the points turns as they move: it is turned back to the one before.
        axes = picture.axes if self.axes is None else _turned(picture.axes, self.axes)
        self.axes = axes
        picture = points.around(torch.zeros_like(rows[0]), axes=axes)
        with contextlib.suppress(OSError):  # a full disk must not end a training: the film has a gap
            self._write(f"{epoch:06d}.npy", picture.positions.astype(np.float32))
            self.epochs.append(epoch)
        if len(self.epochs) > MOST:
            self.stride *= 2
            for other in [e for e in self.epochs[:-1] if e % self.stride]:
                self._drop(other)
        self.spent += time.monotonic() - began

    def _drop(self, epoch: int) -> None:
        self.epochs.remove(epoch)
        (self.folder / f"{epoch:06d}.npy").unlink(missing_ok=True)

    def _write(self, name: str, values: NDArray[Any]) -> None:
        """Whole or not at all for who reads meanwhile. Not flushed: a film that a power cut ends early harms nobody."""
        part = self.folder / f"{name}.part"
        with part.open("wb") as file:
            np.save(file, values)
        os.replace(part, self.folder / name)


def _turned(axes: Tensor, before: Tensor) -> Tensor:
    """The axes (2, d) within their plane that lie nearest to those before: the orthogonal Procrustes problem."""
    if axes.shape[1] <= 2:
        return axes
    u, _, v = torch.linalg.svd(before @ axes.T)
    turned: Tensor = (u @ v) @ axes
    return turned


def drawable(model: Model) -> MobiusGeometry:
    """The geometry of a model's points; Points refuses those that there are no pictures of."""
    return cast(MobiusGeometry, model.geometry)


def dimension_file(dim: int) -> str:
    """The file of the picture of an embedding in so many dimensions."""
    return f"d{dim:03d}.npy"


def epochs_of(path: Path) -> list[int]:
    """The epochs that a run folder has snapshots of, in order."""
    return sorted(int(file.stem) for file in (path / FOLDER).glob("*.npy") if file.stem.isdigit())


class Snapshots:
    """The snapshots of a run folder, read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def epochs(self) -> list[int]:
        """Those there are now."""
        return epochs_of(self.path)

    def entities(self) -> NDArray[np.int64]:
        """Which entities the points are."""
        return _read(self.path / FOLDER / ENTITIES)

    def frame(self, epoch: int) -> NDArray[np.float64]:
        """(P, 2) places in the unit disk, or in the plane of a flat model."""
        return _read(self.path / FOLDER / f"{epoch:06d}.npy").astype(np.float64)

    def sliders(self) -> dict[str, Any] | None:
        """What a layout is compared with, None for a training: see :func:`murp.explorer.tree_demo.compare`."""
        file = self.path / FOLDER / SLIDERS
        try:
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise RunError(f"{file}: cannot be read ({error}).") from None
        return found

    def embedding(self, dim: int) -> NDArray[np.float64]:
        """(P, 2) the same entities embedded in ``dim`` dimensions, as they are drawn."""
        return _read(self.path / FOLDER / dimension_file(dim)).astype(np.float64)

    def check(self) -> None:
        """Raise if there is nothing to show."""
        if not self.epochs():
            raise ConfigError(f"{self.path} has no snapshots of its training. Train with --explore to have some.")


def _read(file: Path) -> NDArray[Any]:
    try:
        values: NDArray[Any] = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RunError(f"{file}: the snapshot cannot be read ({error}).") from None
    return values


def snapshot_scaling(model: Model, last: NDArray[np.float64]) -> DiskScaling:
    """One scaling for all frames, that of the last: the picture grows into it."""
    if model.dim <= 2:
        return DiskScaling()
    return find_scaling(drawable(model), _distances(model, last), from_origin=False)


def shown_frame(model: Model, frame: NDArray[np.float64], scaling: DiskScaling) -> NDArray[np.float64]:
    """A frame as it is drawn."""
    return frame if scaling == DiskScaling() else scaled(drawable(model), frame, _distances(model, frame), scaling)


def _distances(model: Model, frame: NDArray[np.float64]) -> NDArray[np.float64]:
    radius: NDArray[np.float64] = np.linalg.norm(frame, axis=1)
    geometry = drawable(model)
    if geometry.is_flat:
        return radius
    distances: NDArray[np.float64] = 2 * np.arctanh(np.minimum(radius, 1 - 1e-9)) / geometry.c**0.5
    return distances
