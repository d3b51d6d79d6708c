"""Spheres of influence: entities with spheres whose radius comes from their biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import MobiusGeometry
from murp.geometry.disk import euclidean_circle
from murp.plots.entities import bias, degrees, learns_no_bias
from murp.plots.labels import write_names
from murp.plots.layout import around, described, entity_points, new_disk
from murp.plots.style import BLUE, INK, NORMAL, PURPLE, VERMILION
from murp.runs import Run
from murp.widths import shortened


@dataclass(frozen=True)
class Spheres:
    """k entities, the centre first: where their points are drawn, and the circles about them.

    ``entities`` (k,), ``points`` (k, 2), ``middles`` (k, 2), ``radii`` (k,): in the unit disk for the ball, in the
    plane as it is for Euclidean space.
    """

    entities: NDArray[np.int64]
    points: NDArray[np.float64]
    middles: NDArray[np.float64]
    radii: NDArray[np.float64]


def spheres_around(geometry: MobiusGeometry, points: Tensor, biases: Tensor, centre: int, count: int) -> Spheres:
    """``centre`` and the ``count`` entities nearest to it, each with the sphere of radius √b for its bias b.

    An entity of negative bias has the radius 0. (The model takes a pair for a fact where the distance of the moved
    points is below √(b_s + b_o).) In the disk the spheres are hyperbolic circles, which are Euclidean ones about
    another middle. Points (N, d), biases (N,).
    """
    distances = geometry.distance(points[centre], points)
    distances[centre] = -1  # first, whoever shares its place
    chosen = torch.topk(distances, min(count + 1, len(points)), largest=False).indices
    plane = around(geometry, points, points[centre])[chosen]
    middles, radii = plane, biases[chosen].clamp(min=0).sqrt()
    if not geometry.is_flat:
        middles, radii = euclidean_circle(plane, radii, c=geometry.c)
        plane, middles, radii = (geometry.c**0.5 * part for part in (plane, middles, radii))
    shown = (part.cpu().numpy() for part in (plane, middles, radii))
    return Spheres(chosen.cpu().numpy(), *shown)


@torch.no_grad()
def spheres(run: Run, *, centre: int | None = None, count: int = 24) -> Figure:
    """The entities nearest to ``centre``, by default the entity with most facts, with their spheres of influence."""
    graph, geometry = run.graph, run.model.geometry
    learned = bias(run.model)
    if learned is None:
        raise ConfigError(f"{run.path}: {learns_no_bias(run)}, so its entities have no spheres.")
    if centre is None:
        centre = int(degrees(graph).argmax())
    points = entity_points(run.model)
    shown = spheres_around(geometry, points, torch.from_numpy(learned.values).to(points), centre, count)

    kept = "distances are true" if run.config.dim <= 2 else "distances from the centre are true, angles projected"
    title = f"spheres of influence around {shortened(graph.entities.label(centre))}   {described(run)}"
    note = f"radius √b for an entity of {learned.name} b; {kept}"
    if without := int((learned.values[shown.entities] <= 0).sum()):
        note += f"; {without} of {len(shown.entities)} have a negative bias: no sphere"
    # The ends of the circles, for the picture to hold them too.
    ends = [shown.middles + shown.radii[:, None] * side for side in ([1, 0], [-1, 0], [0, 1], [0, -1])]
    figure, axes = new_disk(title, note, None if geometry.is_flat else np.concatenate([shown.points, *ends]))
    if geometry.is_flat:
        axes.patches[0].remove()  # a plane has no boundary
        reach = 1.02 * float((np.linalg.norm(shown.points, axis=1) + shown.radii).max())
        axes.set(xlim=(-reach, reach), ylim=(-reach, reach))
    facts = graph.facts()
    related = np.isin(shown.entities, facts[(facts[:, [0, 2]] == centre).any(1)][:, [0, 2]])
    at_centre = shown.entities == centre
    groups = {
        "shares no fact with the centre": (~related & ~at_centre, BLUE),
        "shares a fact with the centre": (related & ~at_centre, VERMILION),
        f"the centre: {shortened(graph.entities.name(centre), 24)}": (at_centre, PURPLE),
    }
    for level, (label, (members, colour)) in enumerate(groups.items()):
        _draw_circles(axes, shown.middles[members], shown.radii[members], colour)
        axes.scatter(*shown.points[members].T, s=14, c=colour, linewidths=0, zorder=3 + level, label=label)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=NORMAL, labelcolor=INK)
    names = [graph.entities.name(int(i)) for i in shown.entities]
    write_names(axes, names, shown.points, limit=len(names), disk=not geometry.is_flat)
    return figure


def _draw_circles(axes: Any, middles: NDArray[np.float64], radii: NDArray[np.float64], colour: str) -> None:
    circles = [Circle(tuple(middle), radius) for middle, radius in zip(middles, radii, strict=True) if radius > 0]
    for style in ({"facecolor": colour, "alpha": 0.07}, {"facecolor": "none", "edgecolor": colour, "linewidth": 0.7}):
        options: Any = {"zorder": 1, **style}
        axes.add_collection(PatchCollection(circles, **options), autolim=False)
