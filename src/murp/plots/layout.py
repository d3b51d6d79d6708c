"""Positions of entities of any dimension in a picture."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import NotFiniteError
from murp.geometry import MobiusGeometry
from murp.models import MultiRelational
from murp.plots.style import INK, PAGE, PAPER, SMALL, new_figure, tidy, wrapped
from murp.projection import Points
from murp.runs import Run


def entity_points(model: MultiRelational) -> Tensor:
    """The entities' points (N, d) in double precision."""
    return finite(model.parameters["entity"].double())


def finite(points: Tensor) -> Tensor:
    """The points, or an error: a picture of NaN would be empty."""
    if not points.isfinite().all():
        raise NotFiniteError(
            "the points of some entities are not finite. The model's training diverged: train again with a lower "
            "learning rate, or use another checkpoint."
        )
    return points


def around(geometry: MobiusGeometry, points: Tensor, centre: Tensor) -> Tensor:
    """Points (N, d) as seen from ``centre`` (d,), in the geometry of the same kind in two dimensions: (N, 2).

    Distances from the centre stay what they are, and with d = 2 so does everything else: see :mod:`murp.projection`.
    """
    seen = torch.from_numpy(Points(geometry, points).around(centre).positions).to(points)
    return seen / geometry.c**0.5 if not geometry.is_flat else seen


def along(geometry: MobiusGeometry, points: Tensor, subject: Tensor) -> Tensor:
    """The paper's projection of points (N, d) along a subject (d,), in the same units: (N, 2)."""
    seen = torch.from_numpy(Points(geometry, points).along(subject)).to(points)
    return seen / geometry.c**0.5 if not geometry.is_flat else seen


def in_unit_disk(geometry: MobiusGeometry, points: Tensor) -> NDArray[np.float64]:
    """Points (…, 2) of the geometry in the picture's unit disk: √c x in the ball, x/(1 + |x|) in the plane.

    So a point at distance d from the centre is drawn at tanh(√c d/2) or, in Euclidean space, at d/(1 + d).
    """
    if geometry.is_flat:
        return np.asarray((points / (1 + torch.linalg.vector_norm(points, dim=-1, keepdim=True))).cpu())
    return np.asarray((geometry.c**0.5 * points).cpu())


def scale_note(geometry: MobiusGeometry) -> str:
    """How the picture shows a distance, as a note below it."""
    if geometry.is_flat:
        return "distance d from the centre drawn at d/(1 + d)"
    drawn = "tanh(d/2)" if geometry.c == 1 else f"tanh(√{geometry.c:g} d/2)"
    return f"hyperbolic distance d from the centre drawn at {drawn}"


def described(run: Run) -> str:
    """The model as the literature writes it: ``MuRP d=40``."""
    return f"{type(run.model).__name__} d={run.config.dim}"


def reach(positions: NDArray[np.float64]) -> float:
    """How much of the unit disk a picture of positions (n, 2) shows: all of it, or what 99 in 100 of them take up.

    The latter if that is less than half of the radius, as early in training and for small graphs: otherwise all points
    would be in the middle of an empty disk.
    """
    taken = float(np.quantile(np.linalg.norm(positions, axis=1), 0.99))
    return 1.0 if taken >= 0.5 or taken == 0 else 1.15 * taken


def new_disk(
    title: str, note: str, positions: NDArray[np.float64] | None = None, *, half: bool = False
) -> tuple[Figure, Any]:
    """A figure and its axes with the unit disk, or its upper half; as much of it as ``positions`` (n, 2) need.

    Below stands the ``note``, and what is not shown.
    """
    shown = 1.0 if positions is None else reach(positions)
    if positions is not None and shown < 1:
        beyond = int((np.abs(positions) > 1.02 * shown).any(axis=1).sum())
        others = "1 entity" if beyond == 1 else f"{beyond:,} entities"
        unseen = f"the rim and {others} are" if beyond else "the rim is"
        note += f"; {unseen} not shown: the picture ends at {shown:.2g} of the radius"
    figure = new_figure(PAGE, 4.2 if half else 7.6)
    axes: Any = figure.add_subplot(aspect="equal")
    axes.add_patch(Circle((0, 0), 1, facecolor=PAPER, edgecolor=INK, linewidth=1.0, zorder=0))
    tidy(axes, title=title, grid="none")
    side = 1.02 * shown
    axes.set(xlim=(-side, side), ylim=(-0.05 * side if half else -side, side), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_xlabel(wrapped(axes, note, SMALL), fontsize=SMALL, color=INK)
    return figure, axes
