"""The answers to one question in the disk, with the head in the centre."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from murp.graph import KnowledgeGraph
from murp.models import MultiRelational
from murp.plots.answers import ANSWERS, SUBJECT, judged, known_objects, worth_a_name
from murp.plots.labels import write_names
from murp.plots.layout import around, described, entity_points, finite, in_unit_disk, new_disk, scale_note
from murp.plots.style import GREY, INK, NORMAL, save
from murp.runs import Run
from murp.widths import shortened


@dataclass(frozen=True)
class View:
    """Objects around a subject: positions (N, 2) in the unit disk, probabilities (N,), known (N,)."""

    positions: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    known: NDArray[np.bool_]


@torch.no_grad()
def view(model: MultiRelational, graph: KnowledgeGraph, subject: int, relation: int) -> View:
    """The positions of the transformed objects e_o^(r) relative to the transformed subject e_s^(r).

    The subject is brought to the centre by an isometry, and distances from it are true: see
    :func:`murp.plots.layout.around` and :func:`murp.plots.layout.in_unit_disk`.
    """
    s, r = torch.tensor([subject], device=model.device), torch.tensor([relation], device=model.device)
    rows = model.rows("relation", r)
    entities = entity_points(model)
    centre, objects = finite(model.move_subject(entities[s], rows)), finite(model.move_object(entities, rows))
    return View(
        positions=in_unit_disk(model.geometry, around(model.geometry, objects, centre[0])),
        probabilities=torch.sigmoid(model.score_objects(s, r)[0].double()).cpu().numpy(),
        known=known_objects(graph, subject, relation),
    )


def answers_disk(run: Run, subject: int, relation: int, *, labels: int = 40) -> Figure:
    """The picture of the question (head, relation, ?), the head at the centre."""
    graph = run.graph
    seen = view(run.model, graph, subject, relation)
    asked = f"({shortened(graph.entities.label(subject))}, {shortened(graph.relations.name(relation))}, ?)"
    figure, axes = new_disk(f"{asked}   {described(run)}", scale_note(run.model.geometry), seen.positions)
    for level, (answer, chosen) in enumerate(judged(seen.probabilities, seen.known).items()):
        chosen[subject] = False
        colour, area = (GREY, 3.0) if answer == "other" else (ANSWERS[answer][0], 22.0)
        label = f"{'other entities' if answer == 'other' else answer} ({chosen.sum():,})"
        x, y = seen.positions[chosen].T
        many = answer == "other"
        axes.scatter(x, y, s=area, c=colour, label=label, linewidths=0, zorder=1 + 0.1 * level, rasterized=many)
    label = f"head: {shortened(graph.entities.name(subject), 24)}"
    axes.scatter([0], [0], s=90, c=SUBJECT, marker="*", linewidths=0, label=label, zorder=4)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=NORMAL, labelcolor=INK, markerscale=1.2)
    shown = worth_a_name(seen.probabilities, seen.known)
    shown = shown[shown != subject]
    names = [graph.entities.name(int(i)) for i in shown]
    write_names(axes, names, seen.positions[shown], limit=labels, disk=True)
    return figure


def draw(run: Run, *, head: str, relation: str, path: Path) -> None:
    """Write the picture of one question, its parts by id or name, to ``path`` (.png, .svg or .pdf)."""
    save(answers_disk(run, run.graph.entities.find(head), run.graph.relations.find(relation)), path)
