"""Trials of far ablations: every combination is tried, and the best on valid is what has seeds."""

from __future__ import annotations

import itertools
from pathlib import Path

from murp.paper.document import Table
from murp.paper.evidence import Evidence
from murp.paper.experiments import read_settings, valid_mrr
from murp.paper.trials_report import scale_of, trials_of


def test_every_combination_is_tried_and_the_best_on_valid_is_run(toys: Path) -> None:
    evidence, settings = Evidence(toys), read_settings(quick=True)["trials"]
    item = evidence.item("trials")
    assert item is not None
    for cell, asked in zip(item["cells"], settings["cells"], strict=True):
        tried = [evidence.run(name) for name in cell["tried"]]
        combinations = {(run["settings"]["lr"], scale_of(run)) for run in tried}
        assert combinations == set(itertools.product(asked["lr"], asked["scale"]))
        assert {run["settings"]["epochs"] for run in tried} == {settings["training"]["epochs"]}
        assert len({valid_mrr(run) for run in tried}) > 1
        assert cell["runs"] == [max(tried, key=valid_mrr)["name"]]


def test_what_is_stored_can_be_told(toys: Path) -> None:
    evidence = Evidence(toys)
    item, ablations = evidence.item("trials"), evidence.item("table2")
    assert item is not None
    assert ablations is not None
    [trial] = item["cells"]
    which = ("kind", "part", "model")
    [cell] = [one for one in ablations["cells"] if all(one[name] == trial[name] for name in which)]
    [table] = [block for block in trials_of(evidence, cell, 0.4, 0.02) if isinstance(block, Table)]
    assert table.header == ["", "rate 20", "rate 10"]
    assert [row[0] for row in table.rows] == ["initial scale 0.001", "initial scale 0.1"]
