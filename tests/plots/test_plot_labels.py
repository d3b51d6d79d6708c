"""Names in a picture: none over another, judged by the boxes the renderer draws."""

from __future__ import annotations

import numpy as np
import pytest
from boxes import assert_apart, drawn_boxes, overlap
from hypothesis import given, settings
from hypothesis import strategies as st

from murp.plots.labels import write_names
from murp.plots.style import new_figure


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 60), st.floats(0.01, 0.6), st.integers(1, 60), st.booleans())
def test_names_cover_neither_names_nor_points_and_stay_inside(
    seed: int, count: int, spread: float, limit: int, disk: bool
) -> None:
    generator = np.random.default_rng(seed)
    points = np.clip(generator.normal(0, spread, (count, 2)), -0.65, 0.65)
    names = [f"name {'of length ' * generator.integers(0, 3)}{i}" for i in range(count)]
    figure = new_figure(4, 4)
    axes = figure.add_subplot(aspect="equal")
    axes.set(xlim=(-1, 1), ylim=(-1, 1))
    texts = write_names(axes, names, points, limit=limit, disk=disk)
    assert len(texts) <= limit
    written = [text.get_text() for text in texts]
    assert written == [name for name in names if name in written]
    boxes = drawn_boxes(figure, texts)
    assert_apart(boxes)
    frame = axes.get_window_extent().extents
    pixels = axes.transData.transform(points)
    for box in boxes:
        assert box[0] >= frame[0] - 1
        assert box[1] >= frame[1] - 1
        assert box[2] <= frame[2] + 1
        assert box[3] <= frame[3] + 1
        assert not any(overlap(box, (x, y, x, y)) for x, y in pixels)
        if disk:
            corners = axes.transData.inverted().transform([box[:2], box[2:], box[[0, 3]], box[[2, 1]]])
            assert np.linalg.norm(corners, axis=1).max() < 1.01


def test_every_name_is_written_where_there_is_room() -> None:
    figure = new_figure(4, 4)
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    names = ["south-west", "north-west", "north-east", "$middle$"]
    texts = write_names(axes, names, np.array([[0.1, 0.1], [0.1, 0.9], [0.9, 0.9], [0.5, 0.5]]), limit=10)
    assert [text.get_text() for text in texts] == names


def test_a_name_without_room_beside_its_point_is_led_to_by_a_line() -> None:
    figure = new_figure(4, 4)
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    points = 0.5 + 0.02 * np.random.default_rng(0).normal(size=(30, 2))
    texts = write_names(axes, [f"a long name {i}" for i in range(30)], points, limit=30)
    (lines,) = axes.collections
    ends = np.array([segment[0] for segment in lines.get_segments()])  # type: ignore[attr-defined]
    assert 0 < len(ends) <= len(texts)
    assert all(np.abs(points - end).max(1).min() == pytest.approx(0, abs=1e-9) for end in ends)
