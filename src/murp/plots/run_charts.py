"""Pictures of one run, or of several side by side, from the user's options (names, not numbers of entities)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from murp.commands import command
from murp.errors import ConfigError, DataError
from murp.evaluation import Protocol
from murp.graph import Split
from murp.picture_kinds import Colour, Projection
from murp.plots.answers import ask, question
from murp.plots.charts import Bins, convergence, norms_against_biases, relation_bars, reliability
from murp.plots.disk import answers_disk
from murp.plots.entities import bias, entities_disk, learns_no_bias
from murp.plots.layout import described, entity_points
from murp.plots.spheres import spheres
from murp.plots.style import figure_text
from murp.prediction.calibration import SHOWN
from murp.runs import Run
from murp.runs.folder import imported

MOST_BARS = 40


def named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs by what tells them apart: model and dimension, and the folder where these are the same."""
    titles = [described(run) for run in runs]
    return {
        title if titles.count(title) == 1 else f"{title}, {run.path}": run
        for title, run in zip(titles, runs, strict=True)
    }


def disk_of(
    runs: Sequence[Run],
    head: str | None = None,
    relation: str | None = None,
    centre: str | None = None,
    edges: str | None = None,
    colour: Colour = "norm",
    projection: Projection = "distances",
) -> Figure:
    """All entities in the disk, or the answers to the question (head, relation, ?) around its head."""
    (run,) = runs
    entities, relations = run.graph.entities, run.graph.relations
    if head is not None and relation is not None:
        if projection == "paper":
            return question_of(runs, head, relation)
        return answers_disk(run, entities.find(head), relations.find(relation))
    middle = None if centre is None else entities.find(centre)
    drawn = None if edges is None else relations.find(edges)
    return entities_disk(run, centre=middle, edges=drawn, colour=colour, projection=projection)


def spheres_of(runs: Sequence[Run], centre: str | None = None) -> Figure:
    """Spheres of influence around an entity."""
    (run,) = runs
    return spheres(run, centre=None if centre is None else run.graph.entities.find(centre))


def convergence_of(runs: Sequence[Run]) -> Figure:
    """Validation MRR and training loss by epoch, as metrics.jsonl has them; its protocol stands at the axis."""
    curves, protocols = {}, set()
    for name, run in named(runs).items():
        records = run.metrics()
        if not records:
            why = "it was imported without them" if imported(run.path) else "nothing was trained yet"
            raise DataError(f"{run.path} has no metrics: {why}, so there is no curve to draw.")
        valid = [record.get("valid") or {} for record in records]
        protocols |= {figures["protocol"] for figures in valid if figures}
        curves[name] = {
            "epoch": [record["epoch"] for record in records],
            "loss": [record["loss"] for record in records],
            "valid": [figures.get("mrr", np.nan) for figures in valid],
        }
    return convergence(curves, of=f"MRR ({', '.join(sorted(protocols)) or 'no validation'})")


def norms_of(runs: Sequence[Run]) -> Figure:
    """Norm against bias of every entity."""
    shown, which = {}, set()
    for name, run in named(runs).items():
        learned = bias(run.model)
        if learned is None:
            raise ConfigError(f"{run.path}: {learns_no_bias(run)}, so there is nothing to compare.")
        norms = torch.linalg.vector_norm(entity_points(run.model), dim=1)
        shown[name] = (norms.cpu().numpy(), learned.values)
        which.add(learned.name)
    return norms_against_biases(shown, of=" or ".join(sorted(which, reverse=True)))


def relations_of(runs: Sequence[Run], split: Split = "test", protocol: Protocol = "standard") -> Figure:
    """hits@10 by relation, the most hierarchical first by Krackhardt score; the runs share their graph's relations.

    If the graph has many relations, those with most facts in the split are shown.
    """
    from murp.analysis.hierarchy import krackhardt_score, score_text
    from murp.analysis.relations import relation_edges

    graph = runs[0].graph
    if any(run.graph.relations != graph.relations for run in runs):
        raise DataError(f"{runs[0].path} and {runs[1].path} are of graphs with different relations: draw them apart.")
    reports = {name: run.evaluate(split, protocol).by_relation for name, run in named(runs).items()}
    asked = np.bincount(graph.split(split)[:, 1], minlength=graph.num_relations)
    shown = [r for r in np.argsort(-asked, kind="stable").tolist() if asked[r]][:MOST_BARS]
    edges = relation_edges(graph)
    scores = {r: krackhardt_score(edges[r]) for r in shown}
    shown.sort(key=lambda r: -scores[r])
    ids = [graph.relations.id(r) for r in shown]
    rest = f", {len(shown)} relations of {graph.num_relations}" if len(shown) < graph.num_relations else ""
    return relation_bars(
        [graph.relations.name(r) for r in shown],
        {name: np.array([report[id].hits[10] for id in ids], dtype=float) for name, report in reports.items()},
        khs=[score_text(scores[r]) for r in shown],
        of=f"hits@10, protocol {protocol}",
        title=f"{graph.name}, {split}{rest}",
    )


def reliability_of(runs: Sequence[Run]) -> Figure:
    """Probabilities against the share of true answers on test, before and after the calibration in the run folder."""
    (run,) = runs
    found = run.calibration
    if found is None:
        raise DataError(
            f"{run.path} is not calibrated for these weights: run `{command('calibrate', run.path)}` first."
        )
    panels = {}
    for part, name, digits in (
        ("shown", f"the {SHOWN} best answers to each question", 3),
        ("all", "all candidates", 6),
    ):
        panels[name] = {
            f"{kind}, Brier {figure_text(worth['brier'], digits)}": bins_of(worth["reliability"])
            for kind in ("uncalibrated", found.method)
            for worth in (found.test[part][kind],)
        }
    return reliability(panels, title=f"{described(run)} on {run.graph.name}, test")


def bins_of(found: list[dict[str, Any]]) -> Bins:
    """Mean probability, share of facts and count of the bins that hold anything."""
    p, share, n = ([b[key] for b in found if b["count"]] for key in ("predicted", "observed", "count"))
    return p, share, n


def question_of(runs: Sequence[Run], head: str, relation: str) -> Figure:
    """The question (head, relation, ?), its parts by id or name, put to each run."""
    return question(
        {
            name: ask(run.model, run.graph, run.graph.entities.find(head), run.graph.relations.find(relation))
            for name, run in named(runs).items()
        }
    )
