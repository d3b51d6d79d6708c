"""The plan for many GPUs: the page has what the script prints, and its arithmetic holds."""

from __future__ import annotations

import numpy as np
import pytest

import scale_plan


def test_the_page_has_the_plan() -> None:
    page = scale_plan.PAGE.read_text(encoding="utf-8")
    assert scale_plan.filled(page) == page, "run `python tools/scale_plan.py`"
    assert scale_plan.bounds() in page


@pytest.mark.parametrize(("drawn", "among"), [(500, 1000), (3000, 1000), (10, 100_000)])
def test_distinct_numbers_are_those_of_a_draw(drawn: int, among: int) -> None:
    draw = np.random.default_rng(0)
    counts = [len(np.unique(draw.integers(0, among, drawn))) for _ in range(200)]
    assert scale_plan.distinct(drawn, among) == pytest.approx(np.mean(counts), rel=0.01)


def test_messages_inside_a_machine_and_between_machines() -> None:
    """A byte for each other GPU: 7 go by the bus, the others by the slower network."""
    graph = scale_plan.GRAPHS["Freebase"]
    for gpus, slowest in ((8, 7 / 450e9), (64, 56 / 50e9)):
        assert scale_plan.Plan(graph, gpus)._travel(gpus - 1) == pytest.approx(slowest)
