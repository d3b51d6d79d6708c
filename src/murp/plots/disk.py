"""The answers to one question in the disk, as the question's subject sees them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from murp.errors import MurpError
from murp.files import replacing
from murp.graph import KnowledgeGraph
from murp.models import MultiRelational
from murp.runs import Run

# Okabe and Ito's palette: told apart by readers of every kind of colour vision.
KINDS = {
    "other entities": ("#b8c4ce", 5),
    "false positive": ("#e69f00", 34),
    "false negative": ("#009e73", 34),
    "true positive": ("#d55e00", 34),
}
SUBJECT = "#cc79a7"


@dataclass(frozen=True)
class View:
    """Objects around a subject: positions (N, 2) in the unit disk, probabilities (N,), known (N,)."""

    positions: NDArray[np.float64]
    probabilities: NDArray[np.float64]
    known: NDArray[np.bool_]


@torch.no_grad()
def view(model: MultiRelational, graph: KnowledgeGraph, subject: int, relation: int) -> View:
    """Where the moved objects e_o^(r) lie as seen from the moved subject e_s^(r).

    The subject is brought to the centre by an isometry. The distance of a point from the centre of
    the picture is the object's true distance d, drawn at tanh(√c d/2) in the ball and at d/(1 + d)
    in Euclidean space; its angle is that of the object's direction, projected to the plane that
    holds most of the directions of the nearest objects.
    """
    s, r = torch.tensor([subject], device=model.device), torch.tensor([relation], device=model.device)
    rows = model.rows("relation", r)
    centre = model.move_subject(model.parameters["entity"][s], rows).double()
    objects = model.move_object(model.parameters["entity"], rows).double()
    geometry = model.geometry
    distance = geometry.distance(centre, objects)
    direction = geometry.log0(geometry.recentre(objects, centre))
    direction = direction / torch.linalg.vector_norm(direction, dim=-1, keepdim=True).clamp(min=1e-12)
    near = direction[torch.topk(distance, min(len(distance), 200), largest=False).indices]
    axes = torch.linalg.svd(near - near.mean(0), full_matrices=False).Vh[:2]
    plane = direction @ axes.T
    if plane.shape[1] == 1:
        plane = torch.cat([plane, torch.zeros_like(plane)], dim=1)
    angle = torch.atan2(plane[:, 1], plane[:, 0])
    curvature = getattr(geometry, "c", None)
    radius = distance / (1 + distance) if curvature is None else torch.tanh(math.sqrt(curvature) * distance / 2)
    positions = radius[:, None] * torch.stack([angle.cos(), angle.sin()], dim=1)
    probabilities = torch.sigmoid(model.score_objects(s, r)[0].double())
    facts = graph.facts()
    known = np.zeros(graph.num_entities, dtype=bool)
    known[facts[(facts[:, 0] == subject) & (facts[:, 1] == relation), 2]] = True
    return View(positions.cpu().numpy(), probabilities.cpu().numpy(), known)


def draw(run: Run, *, subject: str, relation: str, path: Path, labels: int = 30, size: float = 7.0) -> None:
    """Write the picture of one question (subject, relation, ?) to ``path`` (.png, .svg or .pdf)."""
    if path.suffix not in (".png", ".svg", ".pdf"):
        raise MurpError(f"{path}: pictures are .png, .svg or .pdf, not {path.suffix or 'a name without ending'!r}.")
    graph = run.graph
    s, r = graph.entities.find(subject), graph.relations.find(relation)
    seen = view(run.model, graph, s, r)
    likely = seen.probabilities >= 0.5
    members = {
        "other entities": ~seen.known & ~likely,
        "false positive": ~seen.known & likely,
        "false negative": seen.known & ~likely,
        "true positive": seen.known & likely,
    }
    for chosen in members.values():
        chosen[s] = False

    figure = Figure(figsize=(size, size), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot(aspect="equal")
    axes.add_patch(Circle((0, 0), 1, facecolor="#fbfbf9", edgecolor="#333333", linewidth=1.2, zorder=0))
    for kind, (colour, area) in KINDS.items():
        x, y = seen.positions[members[kind]].T
        label = f"{kind} ({members[kind].sum():,})"
        axes.scatter(x, y, s=area, c=colour, label=label, linewidths=0, zorder=2 if area > 10 else 1)
    axes.scatter([0], [0], s=90, c=SUBJECT, marker="*", label=f"subject: {graph.entities.name(s)}", zorder=4)
    shown = np.flatnonzero(~members["other entities"])
    shown = shown[shown != s]
    shown = shown[np.argsort(-seen.probabilities[shown])]
    _label(axes, [graph.entities.name(i) for i in shown], seen.positions[shown], labels)
    axes.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03))
    axes.axis("off")
    title = f"({graph.entities.label(s)}, {relation}, ?)   {run.config.model} d={run.config.dim}"
    axes.set_title(title, fontsize=11, parse_math=False)
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=3, frameon=False, fontsize=8.5)
    for text in legend.get_texts():
        text.set_parse_math(False)  # a $ in a name is a dollar sign, not mathematics
    try:
        with replacing(path) as part:
            figure.savefig(part, format=path.suffix[1:])
    except OSError as error:
        raise MurpError(f"could not write {path}: {error.strerror}.") from error


def _label(axes: Any, names: list[str], points: NDArray[np.float64], limit: int) -> None:
    """Write up to ``limit`` names beside their points, the first first; one that would cover another is left out."""
    # Sizes in the units of the disk, for the font and the figure below: (left, bottom, right, top).
    taken = [(x - 0.012, y - 0.012, x + 0.012, y + 0.012) for x, y in points]
    written = 0
    for name, (x, y) in zip(names, points, strict=True):
        width, height = 0.0165 * len(name) + 0.01, 0.036
        for dx, dy in ((0.018, 0.0), (-0.018 - width, 0.0), (-width / 2, 0.034), (-width / 2, -0.034)):
            box = (x + dx, y + dy - height / 2, x + dx + width, y + dy + height / 2)
            inside = all(px * px + py * py < 1 for px in (box[0], box[2]) for py in (box[1], box[3]))
            clear = all(box[2] < b[0] or b[2] < box[0] or box[3] < b[1] or b[3] < box[1] for b in taken)
            if inside and clear:
                taken.append(box)
                left = dx < 0 and dy == 0
                at, side = (x - 0.018, "right") if left else (box[0], "left")
                style = {"fontsize": 7.5, "color": "#222222", "zorder": 5, "parse_math": False}
                axes.text(at, y + dy, name, va="center", ha=side, **style)
                written += 1
                break
        if written == limit:
            return
