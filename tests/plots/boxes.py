"""The boxes that names really take in a drawn figure."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure


def drawn_boxes(figure: Figure, texts: list[Any]) -> list[Any]:
    """(left, bottom, right, top) in pixels, after the figure was drawn as it will be written."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    return [text.get_window_extent(renderer).extents for text in texts]


def assert_inside(figure: Figure) -> None:
    """Nothing of the figure, titles and legends included, is cut off at its edge."""
    figure.canvas.draw()
    drawn, (width, height) = figure.get_tightbbox(), figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) >= -0.01
    assert drawn.x1 <= width + 0.01
    assert drawn.y1 <= height + 0.01


def overlap(a: Any, b: Any) -> bool:
    return bool(a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3])


def assert_apart(boxes: list[Any]) -> None:
    assert [(i, j) for i in range(len(boxes)) for j in range(i) if overlap(boxes[i], boxes[j])] == []
