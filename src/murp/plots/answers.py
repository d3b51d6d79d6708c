"""A question (head, relation, ?) as a model answers it, before and after the relation moves it (figure 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray

from murp import projection
from murp.graph import KnowledgeGraph, KnownFacts
from murp.models import MultiRelational
from murp.plots.labels import write_names
from murp.plots.layout import entity_points, finite, reach
from murp.plots.style import BLUE, GREEN, INK, NORMAL, ORANGE, PAGE, PAPER, PURPLE, VERMILION, light, new_figure, tidy
from murp.projection import Points
from murp.widths import shortened

# What the model says of an object and what the graph knows: colour and size, the later drawn above the earlier.
ANSWERS = {
    "other": (BLUE, 3.0),
    "missed": (GREEN, 16.0),
    "new": (ORANGE, 16.0),
    "known": (VERMILION, 16.0),
}
SUBJECT = PURPLE


@dataclass(frozen=True)
class Question:
    """n objects of a question in the paper's projection to the plane, and the subject on the x-axis.

    ``before`` and ``after`` (n, 2): e_o and e_o^(r), each relative to the subject of its stage, which stands at
    x = ``subject_before`` = |e_s| and x = ``subject_after`` = |e_s^(r)|. ``probabilities`` (n,): σ(φ). ``known`` (n,):
    stated by the graph. ``disk``: whether the space has a boundary, drawn at 1.
    """

    subject: str
    relation: str
    names: tuple[str, ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    subject_before: float
    subject_after: float
    probabilities: NDArray[np.float64]
    known: NDArray[np.bool_]
    disk: bool

    def answers(self) -> dict[str, NDArray[np.bool_]]:
        """Which objects are known, new, missed and other: (n,) each."""
        return judged(self.probabilities, self.known)


def judged(probabilities: NDArray[np.float64], known: NDArray[np.bool_]) -> dict[str, NDArray[np.bool_]]:
    """Groups of answers (n,): by the model's prediction, σ(φ) ≥ ½, and by the graph; each answer is in exactly one
    group.

    ``known`` answers are in both, ``new`` ones only predicted, ``missed`` ones only in the graph. A new answer may be
    true: no graph is complete.
    """
    likely = probabilities >= 0.5
    return {
        "other": ~known & ~likely,
        "missed": known & ~likely,
        "new": ~known & likely,
        "known": known & likely,
    }


@torch.no_grad()
def ask(
    model: MultiRelational, graph: KnowledgeGraph, subject: int, relation: int, *, others: int = 1500, seed: int = 0
) -> Question:
    """A model's answers to the question (head, relation, ?).

    All known and all predicted objects are shown, and at most ``others`` of the rest, drawn with ``seed``; the subject
    itself is left out. Norms are in units of the ball's radius.
    """
    s, r = torch.tensor([subject], device=model.device), torch.tensor([relation], device=model.device)
    probabilities = torch.sigmoid(model.score_objects(s, r)[0].double()).cpu().numpy()
    known = known_objects(graph, subject, relation)
    shown = known | (probabilities >= 0.5)
    shown[subject] = False
    rest = np.flatnonzero(~shown)
    rest = rest[rest != subject]
    shown[np.random.default_rng(seed).permutation(rest)[:others]] = True
    chosen = np.flatnonzero(shown)

    points = Points(model.geometry, entity_points(model)[torch.from_numpy(chosen).to(model.device)])
    seen = projection.question(model, points, subject, relation, "paper")
    finite(torch.from_numpy(np.concatenate([seen.before, seen.after])))
    return Question(
        subject=graph.entities.name(subject),
        relation=graph.relations.name(relation),
        names=tuple(graph.entities.name(int(i)) for i in chosen),
        before=seen.before,
        after=seen.after,
        subject_before=float(seen.subject_before[0]),
        subject_after=float(seen.subject_after[0]),
        probabilities=probabilities[chosen],
        known=known[chosen],
        disk=not model.geometry.is_flat,
    )


def known_objects(graph: KnowledgeGraph, subject: int, relation: int) -> NDArray[np.bool_]:
    """Which entities (N,) are objects of (subject, relation, ·) in any split."""
    known = np.zeros(graph.num_entities, dtype=bool)
    known[KnownFacts.of_question(graph, subject, relation).objects] = True
    return known


def worth_a_name(probabilities: NDArray[np.float64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The objects known or predicted: a new, a missed and a known one in turns, each the likeliest first.

    In turns, so that all three kinds have names even if there is little room.
    """
    likely = probabilities >= 0.5
    kinds = [np.flatnonzero(chosen) for chosen in (likely & ~known, known & ~likely, known & likely)]
    kinds = [one[np.argsort(-probabilities[one], kind="stable")] for one in kinds]
    turns = np.concatenate([np.arange(len(one)) for one in kinds])
    shown: NDArray[np.int64] = np.concatenate(kinds)[np.argsort(turns, kind="stable")]
    return shown


def question(models: Mapping[str, Question], *, labels: int = 25) -> Figure:
    """The answers of each model: objects before the transformation light, after it solid (the paper's figure 5)."""
    count = len(models)
    figure = new_figure(PAGE if count > 1 else 5.0, 3.6 if count > 1 else 5.0)
    for axes, (name, asked) in zip(np.atleast_1d(figure.subplots(1, count)), models.items(), strict=True):
        _panel(axes, name, asked)
    handles, texts = axes.get_legend_handles_labels()
    figure.legend(handles, texts, loc="outside lower center", ncols=3, frameon=False, fontsize=NORMAL, labelcolor=INK)
    for axes, asked in zip(figure.axes, models.values(), strict=True):
        shown = worth_a_name(asked.probabilities, asked.known)
        write_names(axes, [asked.names[i] for i in shown], asked.after[shown], limit=labels, disk=asked.disk)
    return figure


def _panel(axes: Any, name: str, asked: Question) -> None:
    if asked.disk:
        axes.add_patch(Circle((0, 0), 1, facecolor=PAPER, edgecolor=INK, linewidth=1.0, zorder=0))
    for known, colour in ((False, BLUE), (True, VERMILION)):
        x, y = asked.before[asked.known == known].T
        label = "true tail, before" if known else "other tail, before"
        axes.scatter(x, y, s=12 if known else 3, c=light(colour), label=label, linewidths=0, zorder=1 + known)
    for level, (answer, chosen) in enumerate(asked.answers().items()):
        colour, area = ANSWERS[answer]
        axes.scatter(*asked.after[chosen].T, s=area, c=colour, label=answer, linewidths=0, zorder=3 + 0.1 * level)
    star = {"marker": "*", "linewidths": 0, "zorder": 5}
    axes.scatter([asked.subject_before], [0], s=70, c=light(SUBJECT, 0.5), label="head, before", **star)
    axes.scatter([asked.subject_after], [0], s=70, c=SUBJECT, label="head, after", **star)
    seen = np.concatenate([asked.before, asked.after, [[asked.subject_before, 0], [asked.subject_after, 0]]])
    left, right, top = seen[:, 0].min(), seen[:, 0].max(), seen[:, 1].max()
    rim = asked.disk and reach(seen) == 1
    if rim:
        right = top = 1.0
    # Wide enough for names beside a tall and narrow cloud.
    width, middle = 1.06 * max(right - left, top), (left + right) / 2
    axes.set(xlim=(middle - width / 2, middle + width / 2), ylim=(-0.08 * top, 1.04 * top), aspect="equal")
    title = f"{name}: ({shortened(asked.subject)}, {shortened(asked.relation)}, ?)"
    along = "along the head" + ("; the rim is not shown" if asked.disk and not rim else "")
    tidy(axes, x=along, y="the rest", title=title, grid="none")
