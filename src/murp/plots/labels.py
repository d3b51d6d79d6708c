"""Names beside points, without overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.patheffects import withStroke
from numpy.typing import NDArray

from murp.plots.fonts import set_fonts
from murp.plots.style import INK, SMALL, literal
from murp.widths import shortened

Array = NDArray[np.float64]

GAP = 3.6  # points of type between the middle of a point and its name
DOT = 2.6  # and from that middle to the rim
CLEAR = 0.8  # and between two names: fonts come out a little wider in one format than in another
FARTHER = (1.0, 3.5, 7.0, 11.0)  # gaps away; from the second on a thin line leads to the name
# Where a name may stand, best first: (right, up) in gaps, and the side of the text that is held there.
PLACES = (
    (1.0, 0.0, "left", "center"),
    (-1.0, 0.0, "right", "center"),
    (0.0, 1.0, "center", "bottom"),
    (0.0, -1.0, "center", "top"),
    (0.7, 0.7, "left", "bottom"),
    (0.7, -0.7, "left", "top"),
    (-0.7, 0.7, "right", "bottom"),
    (-0.7, -0.7, "right", "top"),
)
_START = {"left": 0.0, "center": -0.5, "right": -1.0, "bottom": 0.0, "top": -1.0}


def write_names(axes: Any, names: Sequence[str], points: Array, *, limit: int, disk: bool = False) -> list[Any]:
    """Write up to ``limit`` names beside their points (n, 2), the first first, and return the texts.

    A name covers no other name, no other of the points and no line that leads to a name, such lines do not cross, and
    it stands within the axes, in a ``disk`` within the unit circle; one that fits nowhere is left out, as is that of a
    point outside the axes. Long names are shortened. To be called last: what moves or rescales the axes
    afterwards moves the names too.
    """
    figure = axes.figure
    literal(figure)
    figure.draw_without_rendering()  # settles the layout, and with it how many pixels a unit has
    renderer = figure.canvas.get_renderer()
    pixels = figure.dpi / 72  # in a point of type
    points = np.reshape(points, (-1, 2))
    at: Array = axes.transData.transform(points)
    to_data = axes.transData.inverted()
    frame = axes.get_window_extent(renderer)
    page = _Page(np.concatenate([at - DOT * pixels, at + DOT * pixels], axis=1), CLEAR * pixels)
    written: list[Any] = []
    for name, here, point in zip(names, at, points, strict=True):
        if len(written) == limit:
            break
        if not frame.contains(*here):
            continue
        style: Any = {"fontsize": SMALL, "color": INK, "zorder": 6, "in_layout": False}
        text = axes.annotate(shortened(name), point, xytext=(0, 0), textcoords="offset points", **style)
        set_fonts(text)
        size = text.get_window_extent(renderer)
        extent = np.array([size.width, size.height])
        for offset, side, height, far in _places():
            anchor = here + offset * pixels
            corner = anchor + extent * (_START[side], _START[height])
            box = np.concatenate([corner, corner + extent])
            corners = box[[[0, 1], [0, 3], [2, 1], [2, 3]]]
            if not np.all((corners >= [frame.x0, frame.y0]) & (corners <= [frame.x1, frame.y1])):
                continue
            if disk and np.any(np.linalg.norm(to_data.transform(corners), axis=1) >= 1):
                continue
            if page.take(box, np.stack([here, anchor]) if far else None):
                text.set(position=offset, ha=side, va=height)
                text.set_path_effects([withStroke(linewidth=1.5, foreground="white")])
                written.append(text)
                break
        else:
            text.remove()
    lines = [to_data.transform(line) for line in page.lines]
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=0.3, zorder=5), autolim=False)
    return written


@dataclass
class _Page:
    """What is taken, in pixels: ``dots`` (n, 4) of the points, names ``boxes`` (m, 4), ``lines`` (2, 2) to names."""

    dots: Array
    clear: float
    boxes: Array = field(default_factory=lambda: np.empty((0, 4)))
    lines: list[Array] = field(default_factory=list)

    def take(self, box: Array, line: Array | None) -> bool:
        """Whether box and line are free; if so, they are taken from now on."""
        wide = box + self.clear * np.array([-1, -1, 1, 1])
        taken = np.concatenate([self.dots, self.boxes])
        if np.any(np.all((wide[:2] < taken[:, 2:]) & (taken[:, :2] < wide[2:]), axis=1)):
            return False
        if any(_pass_through(other, box[None]) for other in self.lines):
            return False
        if line is not None:
            if _pass_through(line, self.boxes) or any(_cross(line, other) for other in self.lines):
                return False
            self.lines.append(line)
        self.boxes = np.concatenate([self.boxes, box[None]])
        return True


def _places() -> Iterator[tuple[Array, str, str, bool]]:
    """Offset in points of type, the side and the height of the text held there, and whether it is far; near first."""
    for steps in FARTHER:
        for right, up, side, height in PLACES:
            yield GAP * steps * np.array([right, up]), side, height, steps > 1


def _pass_through(line: Array, boxes: Array) -> bool:
    """Whether a segment (2, 2) passes through any of the boxes (m, 4), by 24 of its points."""
    steps = np.linspace(line[0], line[1], 24)[:, None]
    return bool(np.any(np.all((boxes[:, :2] < steps) & (steps < boxes[:, 2:]), axis=2)))


def _cross(a: Array, b: Array) -> bool:
    """Whether two segments (2, 2) cross: the ends of each lie on different sides of the other."""

    def side(line: Array, point: Array) -> float:
        (x, y), (u, v) = line[1] - line[0], point - line[0]
        return float(x * v - y * u)

    return side(a, b[0]) * side(a, b[1]) < 0 and side(b, a[0]) * side(b, a[1]) < 0
