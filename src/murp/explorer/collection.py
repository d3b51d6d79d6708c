"""The runs that are shown, one or two, with everything that is computed once."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from murp.errors import ConfigError, NotFiniteError, RunError
from murp.evaluation import Report
from murp.explorer.disk_scaling import DiskScaling, find_scaling, scaled
from murp.explorer.tree import Hierarchy, Tree, importance
from murp.graph import SPLITS, KnowledgeGraph, KnownFacts, Split
from murp.prediction import Answers
from murp.projection import Picture, Points
from murp.runs import Run
from murp.threads import one_thread
from murp.web.encoding import packed
from murp.web.names import Names

MOST_POINTS = 1_000_000  # drawn; of a larger graph the most important entities
MOST_RUNS = 4  # side by side: more are too small to look at
MOST_NAMED = 100_000  # of those drawn: whose ids and names the page is given
LEVELS = 8
RELATIONS_KEPT = 64


class PreparedRun:
    """One run, what it answers, norms and biases; ``points`` are those drawn, ``home``: seen from the origin."""

    def __init__(self, run: Run, known: KnownFacts, hierarchy: Hierarchy) -> None:
        for name, values in run.model.parameters.items():
            if not bool(torch.isfinite(values).all()):
                raise NotFiniteError(
                    f"{run.path}: the table {name} holds NaN or infinity. Its training diverged: train again with a "
                    "lower learning rate, or use another --checkpoint."
                )
        self.run = run
        self.model = run.model
        self.calibration = run.calibration  # now: a training may put other weights, and theirs, into the folder
        self.answers = Answers(run.model, run.graph, known, ready=True)
        entity = run.model.parameters["entity"]
        self.tree = Tree(hierarchy, run.model)
        self.norms: list[float] = torch.linalg.vector_norm(entity.double(), dim=-1).tolist()
        self.biases: dict[str, list[float]] = {
            role: run.model.parameters[name].tolist()
            for role, name in (("head", "subject_bias"), ("tail", "object_bias"))
            if name in run.model.parameters
        }

    def draw(self, shown: NDArray[np.int64]) -> None:
        """Prepare the pictures of these entities, in this order."""
        entity = self.model.parameters["entity"]
        self.points = Points(self.model.geometry, entity[shown])
        self.home = self.points.around(torch.zeros_like(entity[0]), near=None)
        drawn = np.array(self.norms, dtype=np.float64)[shown]
        bounds = np.quantile(drawn, np.arange(1, LEVELS) / LEVELS)
        self.levels = packed(np.searchsorted(bounds, drawn, side="right"), "uint8")

    def scaling(self, picture: Picture, *, from_origin: bool) -> tuple[NDArray[np.float64], DiskScaling]:
        """A picture's positions that take up the disk; a model of two dimensions is drawn as it is."""
        if self.model.dim <= 2:
            return picture.positions, DiskScaling()
        scaling = find_scaling(self.model.geometry, picture.distances, from_origin=from_origin)
        return scaled(self.model.geometry, picture.positions, picture.distances, scaling), scaling


class Collection:
    """The runs side by side, the names and facts of their graph, and metrics that take a while."""

    @one_thread()
    def __init__(self, runs: Sequence[Run], columns: dict[str, list[str | None]] | None = None) -> None:
        if len(runs) > MOST_RUNS:
            raise ConfigError(f"{len(runs)} runs do not fit side by side: give at most {MOST_RUNS}.")
        for other in runs[1:]:
            _refuse_another_graph(runs[0], other)
        self.graph = graph = runs[0].graph
        self.columns = columns or {}  # of the reader: a text for every entity, None if there is none
        facts = graph.facts()
        degree = np.bincount(facts[:, [0, 2]].ravel(), minlength=graph.num_entities)
        self.entities = Names(graph.entities, degree)
        self.relations = Names(graph.relations, np.bincount(facts[:, 1], minlength=graph.num_relations))
        self.known = KnownFacts.of(graph)
        self.hierarchy = Hierarchy.of(graph)
        self.suggestions: list[dict[str, Any]] | None = None  # questions to begin with, once they are looked for
        self.prepared = [PreparedRun(run, self.known, self.hierarchy) for run in runs]
        self.importance = importance(degree, self.prepared[0].tree)
        # The most important first: the page draws and names as many from the front as it has time and room for.
        self.shown = np.argsort(-self.importance, kind="stable")[:MOST_POINTS]
        for prepared in self.prepared:
            prepared.draw(self.shown)
        self.edges = lru_cache(maxsize=RELATIONS_KEPT)(self._edges)
        self._reports: list[Future[Report]] = []
        self._evaluated_by = 0  # a process; a forked child has none of its parent's threads

    def evaluate(self) -> None:
        """Begin to evaluate every run, one after the other, in the background."""
        if self._evaluated_by == os.getpid():
            return
        self._evaluated_by = os.getpid()
        self._reports = [Future() for _ in self.prepared]
        for report in self._reports:
            report.set_running_or_notify_cancel()  # nobody who stops waiting cancels it for the others
        # A daemon: the explorer need not wait for metrics that nobody will read.
        threading.Thread(target=self._evaluate, name="murp-metrics", daemon=True).start()

    def _evaluate(self) -> None:
        split: Split = next((s for s in reversed(SPLITS) if len(self.graph.split(s))), "test")
        for prepared, report in zip(self.prepared, self._reports, strict=True):
            try:
                report.set_result(prepared.run.evaluate(split))
            except Exception as error:  # who asks for the metrics is told
                report.set_exception(error)

    @property
    def default_relation(self) -> int:
        """The relation that a reader sees first: the hierarchy's, or the one with most facts."""
        if self.hierarchy.relation is not None:
            return self.hierarchy.relation
        return int(np.argmax(self.relations.weights))

    def report(self, run: int) -> Future[Report]:
        """The metrics of a run, numbered from 1, once they are there."""
        self.evaluate()
        return self._reports[run - 1]

    def _edges(self, relation: int) -> dict[str, Any]:
        """The distinct facts (E, 2) of a relation whose head and tail are both drawn, as places among the points."""
        place = np.full(self.graph.num_entities, -1)
        named = self.shown[:MOST_NAMED]
        place[named] = np.arange(len(named))
        facts = self.graph.facts()
        pairs = np.unique(facts[facts[:, 1] == relation][:, [0, 2]], axis=0)
        drawn = place[pairs]
        both = (drawn >= 0).all(1)
        splits = self.known.split_of(
            pairs[:, 0].astype(np.int64), np.full(len(pairs), relation), pairs[:, 1:].astype(np.int64)
        )
        return {
            "facts": len(pairs),
            "edges": packed(drawn[both], "uint32"),
            "splits": packed(splits[both, 0], "uint8"),
        }


def _refuse_another_graph(first: Run, other: Run) -> None:
    ours, theirs = first.graph, other.graph
    if ours.entities.ids != theirs.entities.ids or ours.relations.ids != theirs.relations.ids:
        raise RunError(
            f"{other.path} was trained on another graph than {first.path}: {_size(theirs)} against {_size(ours)}. "
            "Runs are compared on one graph: train both on the same --data."
        )
    for split in SPLITS:
        if not np.array_equal(ours.split(split), theirs.split(split)):
            raise RunError(
                f"{other.path} was trained on another {split} split of {theirs.name} than {first.path}. "
                "Runs are compared on one graph: train both on the same --data with the same --split-seed."
            )


def _size(graph: KnowledgeGraph) -> str:
    return f"{graph.name} with {graph.num_entities:,} entities and {graph.num_relations:,} relations"
