"""Runs side by side when some of them fail: the others are reported, saved and continued, and they alone."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from murp.engines import Chunk, TorchEngine
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder
from murp.training import Interrupted
from murp.training.lane import Lane
from murp.training.loop import fit
from murp.training.progress import JsonLines, Silent
from murp.training.start import configure, new_model
from murp.training.state import State

SETTINGS: dict[str, Any] = {"dim": 2, "epochs": 3, "lr": 1.0, "batch_size": 8, "negatives": 3, "device": "cpu"}


class SideBySide:
    """The engine torch for every lane; in lane ``sick`` from epoch 2 on the loss is NaN."""

    name = "torch"

    def __init__(self, lanes: Sequence[Lane], sick: int | None) -> None:
        self.engines = [TorchEngine(lane.model) for lane in lanes]
        self.lanes, self.sick = lanes, sick

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        sums = [e.run([chunk], [lr]) for e, chunk, lr in zip(self.engines, chunks, rates, strict=True)]
        if self.sick is not None and self.lanes[0].state.epoch >= 1:
            sums[self.sick] = sums[self.sick] * math.nan
        return torch.cat(sums)


@pytest.fixture
def lanes(small_tree: KnowledgeGraph, tmp_path: Path) -> list[Lane]:
    made = []
    for seed in range(3):
        _, config = configure(small_tree, {**SETTINGS, "seed": seed})
        lane = Lane(tmp_path / f"run{seed}", config, small_tree, new_model(config, small_tree), State())
        folder.create(lane.path, config, small_tree, lane.model, lane.state.to_dict(), "torch")
        made.append(lane)
    return made


def refuse_nan(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def test_a_lane_that_failed_is_reported_no_more(lanes: list[Lane], capsys: pytest.CaptureFixture[str]) -> None:
    fit(lanes, SideBySide(lanes, sick=1), JsonLines())
    records = [json.loads(line, parse_constant=refuse_nan) for line in capsys.readouterr().out.splitlines()]
    told = {str(lane.path): [r["epoch"] for r in records if r["run"] == str(lane.path)] for lane in lanes}
    assert list(told.values()) == [[1, 2, 3], [1], [1, 2, 3]]
    assert lanes[1].failure is not None
    assert [len(folder.read_metrics(lane.path)) for lane in lanes] == [3, 1, 3]


class Spoil(Silent):
    """After the first chunk Ctrl-C arrives, and by then the parameters of the lanes ``sick`` are broken."""

    def __init__(self, lanes: Sequence[Lane], sick: Sequence[int]) -> None:
        self.sick = [lanes[i] for i in sick]

    def advance(self, *told: Any) -> None:
        for lane in self.sick:
            lane.model.parameters["entity"][0] = math.nan
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("sick", [[], [1], [0, 2], [0, 1, 2]])
def test_ctrl_c_names_the_lanes_that_were_saved(lanes: list[Lane], sick: list[int]) -> None:
    with pytest.raises(Interrupted, match="stopped in epoch 1") as stopped:
        fit(lanes, SideBySide(lanes, sick=None), Spoil(lanes, sick))
    for number, lane in enumerate(lanes):
        assert (f"--resume {lane.path}" in str(stopped.value)) == (number not in sick)
        tables, state = checkpoint.load(lane.path / folder.LAST)
        assert (state["chunk"] > 0) == (number not in sick)
        assert tables["entity"].isfinite().all()
    if len(sick) == len(lanes):
        assert "became NaN or infinite" in str(stopped.value)
