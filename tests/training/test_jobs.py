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
from murp.training.job import Job
from murp.training.loop import fit
from murp.training.progress import JsonLines, Silent
from murp.training.start import configure, new_model
from murp.training.state import State

SETTINGS: dict[str, Any] = {"dim": 2, "epochs": 3, "lr": 1.0, "batch_size": 8, "negatives": 3, "device": "cpu"}


class SideBySide:
    """The engine torch for every job; in job ``sick`` from epoch 2 on the loss is NaN."""

    name = "torch"

    def __init__(self, jobs: Sequence[Job], sick: int | None) -> None:
        self.engines = [TorchEngine(job.model) for job in jobs]
        self.states = [{} for _ in jobs]
        self.jobs, self.sick = jobs, sick

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        sums = [e.run([chunk], [lr]) for e, chunk, lr in zip(self.engines, chunks, rates, strict=True)]
        if self.sick is not None and self.jobs[0].state.epoch >= 1:
            sums[self.sick] = sums[self.sick] * math.nan
        return torch.cat(sums)


@pytest.fixture
def jobs(small_tree: KnowledgeGraph, tmp_path: Path) -> list[Job]:
    made = []
    for seed in range(3):
        _, config = configure(small_tree, {**SETTINGS, "seed": seed})
        job = Job(tmp_path / f"run{seed}", config, small_tree, new_model(config, small_tree), State())
        folder.create(job.path, config, small_tree, job.model, job.state.to_dict(), "torch")
        made.append(job)
    return made


def refuse_nan(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def test_a_run_that_failed_is_reported_no_more(jobs: list[Job], capsys: pytest.CaptureFixture[str]) -> None:
    fit(jobs, SideBySide(jobs, sick=1), JsonLines())
    records = [json.loads(line, parse_constant=refuse_nan) for line in capsys.readouterr().out.splitlines()]
    told = {str(job.path): [r["epoch"] for r in records if r["run"] == str(job.path)] for job in jobs}
    assert list(told.values()) == [[1, 2, 3], [1], [1, 2, 3]]
    assert jobs[1].failure is not None
    assert [len(folder.read_metrics(job.path)) for job in jobs] == [3, 1, 3]


class Spoil(Silent):
    """After the first chunk Ctrl-C arrives, and by then the parameters of the jobs ``sick`` are broken."""

    def __init__(self, jobs: Sequence[Job], sick: Sequence[int]) -> None:
        self.sick = [jobs[i] for i in sick]

    def advance(self, *told: Any) -> None:
        for job in self.sick:
            job.model.parameters["entity"][0] = math.nan
        os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("sick", [[], [1], [0, 2], [0, 1, 2]])
def test_ctrl_c_names_the_runs_that_were_saved(jobs: list[Job], sick: list[int]) -> None:
    with pytest.raises(Interrupted, match="stopped in epoch 1") as stopped:
        fit(jobs, SideBySide(jobs, sick=None), Spoil(jobs, sick))
    for number, job in enumerate(jobs):
        assert (f"--resume {job.path}" in str(stopped.value)) == (number not in sick)
        tables, state = checkpoint.load(job.path / folder.LAST)
        assert (state["chunk"] > 0) == (number not in sick)
        assert tables["entity"].isfinite().all()
    if len(sick) == len(jobs):
        assert "became NaN or infinite" in str(stopped.value)
