"""The plan for many GPUs: the page has what the script prints, and its arithmetic holds."""

from __future__ import annotations

import numpy as np
import pytest

import scale_constants
import scale_errors
import scale_model
import scale_plan

stored = scale_errors.stored.result


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


def test_a_slower_network_matters_between_machines_alone() -> None:
    graph = scale_plan.GRAPHS["Wikidata"]
    inside, between = (
        scale_plan.Plan(graph, gpus, scale_constants.ETHERNET).seconds / scale_plan.Plan(graph, gpus).seconds
        for gpus in (8, 64)
    )
    assert inside == 1
    assert between > 20


def test_every_constant_names_its_source_or_says_that_it_is_assumed() -> None:
    page = scale_plan.text()
    for one in scale_constants.CONSTANTS:
        said = one.cells()[2]
        assert ("**assumption**" in said) == (one.source is None)
        assert one.why or one.source
        assert said in page
    for published in scale_constants.PUBLISHED:
        assert str(published.source) in page
    for _, _, source in scale_constants.SIZES:
        assert "](https://" in source


def test_the_formula_is_applied_to_measured_cases() -> None:
    cases = scale_errors.steps_on_one_gpu()
    assert any("100,000,000 entities on the GPU" in one.what for one in cases)
    assert any("40,943 entities in host memory" in one.what for one in cases)
    # One rank is what the others are predicted from, so it is no case.
    assert {one.what.split(" of ")[-1][0] for one in scale_errors.work_of_ranks()} == {"2", "4"}
    assert len(scale_errors.work_of_ranks()) == 2 * len([one for one in scale_errors.MEASURED if stored(one)])
    table = scale_errors.errors_table()
    for one in (*cases, *scale_errors.work_of_ranks(), *scale_errors.bytes_of_ranks()):
        assert " | ".join(one.cells()) in table
    late = scale_errors.Compared("it", 1.0, 4.0)
    assert late.cells() == ["it", "1.00 s", "4.00 s", "−75%"]
    many = scale_model.seconds_of_kernel(40, 10_000_000) / scale_model.seconds_of_kernel(40, 40_943)
    assert many == pytest.approx(scale_model.figures("gpu_many_entities")["ratio"])


def test_the_page_can_be_made_before_ranks_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        scale_errors.stored, "result", lambda name: None if name in scale_errors.MEASURED else stored(name)
    )
    assert scale_errors.worst() == 1
    assert "ranks, CPU" not in scale_plan.text()
    one_of_them = "distributed_shared_cpu"
    monkeypatch.setattr(scale_errors.stored, "result", lambda name: None if name == one_of_them else stored(name))
    assert "ranks, CPU" in scale_plan.text()
    assert "WN18RR, negatives shared by a batch" not in scale_plan.text()
