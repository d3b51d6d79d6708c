"""A grid of settings: every combination an ordinary run, trained as if alone.

Weights are compared bit for bit: on a CPU each run is trained by the same code whether alone or not, and the order of
its sums does not depend on threads (see test_training.py).
"""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import signal
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import assert_same_up_to_rounding

import murp
from murp.errors import ConfigError, DivergedError, MurpError, RunError
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.runs import Run, checkpoint, folder
from murp.training import Interrupted, sweep
from murp.training.grid import grid
from murp.training.progress import Silent
from murp.training.trials import run_names

SETTINGS = {"dim": [5], "epochs": [2], "batch_size": [8], "negatives": [3], "device": ["cpu"], "validate_every": [1]}


def test_grid_is_every_combination() -> None:
    assert grid({"lr": [1, 2], "seed": [0], "model": ["murp", "mure"]}) == [
        {"lr": 1, "seed": 0, "model": "murp"},
        {"lr": 1, "seed": 0, "model": "mure"},
        {"lr": 2, "seed": 0, "model": "murp"},
        {"lr": 2, "seed": 0, "model": "mure"},
    ]
    assert run_names(grid({"lr": [1, 2], "seed": [0], "model": ["murp", "mure"]})) == [
        "lr1-modelmurp", "lr1-modelmure", "lr2-modelmurp", "lr2-modelmure"
    ]  # fmt: skip
    assert run_names([{"lr": 1}]) == ["run"]
    with pytest.raises(ConfigError, match="the same"):
        run_names([{"lr": 1}, {"lr": 1}])


def test_each_run_is_as_if_trained_alone(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "lr": [0.5, 2.0], "model": ["murp", "mure"]})
    runs = sweep(small_tree, settings, out=tmp_path / "grid")
    for chosen, run in zip(settings, runs, strict=True):
        assert isinstance(run, Run)
        alone = murp.train(small_tree, out=tmp_path / f"{chosen['lr']}{chosen['model']}", **chosen)
        assert all(torch.equal(v, alone.model.parameters[k]) for k, v in run.model.parameters.items())
    rows = json.loads((tmp_path / "grid" / "sweep.json").read_text())
    assert [row["run"] for row in rows] == ["lr0.5-modelmurp", "lr0.5-modelmure", "lr2.0-modelmurp", "lr2.0-modelmure"]
    assert all(row["valid_mrr_standard"] > 0 for row in rows)


def test_a_finished_run_is_not_repeated_and_another_one_refused(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "lr": [0.5, 1.0]})
    sweep(small_tree, settings[:1] + settings[1:], out=tmp_path)
    first = tmp_path / "lr0.5" / "last.safetensors"
    before = first.stat().st_mtime_ns
    sweep(small_tree, settings, out=tmp_path)
    assert first.stat().st_mtime_ns == before
    with pytest.raises(ConfigError, match="other settings"):
        sweep(small_tree, grid({**SETTINGS, "lr": [0.5, 1.0], "epochs": [3]}), out=tmp_path)


def test_a_run_that_diverges_does_not_take_the_others_along(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "model": ["mure"], "lr": [1e25, 1.0], "epochs": [6]})
    broken, fine = sweep(small_tree, settings, out=tmp_path)
    assert isinstance(broken, DivergedError)
    assert f"in epoch {broken.epoch} (learning rate {broken.lr:g})" in str(broken)
    assert isinstance(fine, Run)
    assert "failed" in json.loads((tmp_path / "sweep.json").read_text())[0]
    tables, _ = checkpoint.load(tmp_path / "lr1e+25" / "last.safetensors")
    assert all(values.isfinite().all() for values in tables.values())


def times(out: Path) -> dict[str, int]:
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/last.safetensors")}


def test_runs_that_stopped_early_are_finished(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "lr": [5.0, 10.0], "epochs": [200], "patience": [1]})
    runs = sweep(small_tree, settings, out=tmp_path)
    assert all(isinstance(run, Run) and len(run.metrics()) < 200 for run in runs)
    before = times(tmp_path)
    again = sweep(small_tree, settings, out=tmp_path)
    assert all(isinstance(run, Run) and run.graph is small_tree for run in again)
    assert times(tmp_path) == before


def test_a_sweep_goes_on_with_what_was_interrupted(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "lr": [0.5, 1.0, 2.0], "epochs": [4]})
    whole = sweep(small_tree, settings, out=tmp_path / "whole")

    class Stop(Silent):
        def epoch(self, record: dict[str, object]) -> None:
            if record["lr"] == 1.0 and record["epoch"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match=r"--resume .*lr1\.0"):
        sweep(small_tree, settings, out=tmp_path / "parts", progress=Stop())
    first = times(tmp_path / "parts")
    assert sorted(first) == ["lr0.5", "lr1.0"]
    parts = sweep(small_tree, settings, out=tmp_path / "parts")
    assert times(tmp_path / "parts")["lr0.5"] == first["lr0.5"]
    for one, other in zip(whole, parts, strict=True):
        assert isinstance(one, Run)
        assert isinstance(other, Run)
        assert all(torch.equal(v, other.model.parameters[k]) for k, v in one.model.parameters.items())


def test_a_run_that_diverged_is_reported_again(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "model": ["mure"], "lr": [1e25, 1.0], "epochs": [6]})
    first = sweep(small_tree, settings, out=tmp_path)
    summary = (tmp_path / "sweep.json").read_text()
    again = sweep(small_tree, settings, out=tmp_path)
    assert isinstance(again[0], DivergedError)
    assert str(again[0]) == str(first[0])
    assert isinstance(again[1], Run)
    assert (tmp_path / "sweep.json").read_text() == summary


def test_a_run_that_cannot_be_made_does_not_stop_the_others(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "dim": [4, 10**12, 8]})
    for _ in range(2):  # the same command again
        first, huge, last = sweep(small_tree, settings, out=tmp_path)
        assert isinstance(first, Run)
        assert isinstance(huge, MurpError)
        assert "smaller --dim" in str(huge)
        assert isinstance(last, Run)
        rows = json.loads((tmp_path / "sweep.json").read_text())
        assert ["failed" in row for row in rows] == [False, True, False]


def test_the_summary_is_written_where_no_run_could_be_made(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    (only,) = sweep(small_tree, grid({**SETTINGS, "dim": [10**12]}), out=tmp_path / "new" / "grid")
    assert isinstance(only, MurpError)
    assert "failed" in json.loads((tmp_path / "new" / "grid" / "sweep.json").read_text())[0]


def test_a_folder_that_cannot_be_made_is_that_runs_failure(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = folder.create

    def full(path: Path, *given: Any, **more: Any) -> None:
        if path.name == "lr1.0":
            raise RunError("the disk is full")
        create(path, *given, **more)

    monkeypatch.setattr(folder, "create", full)
    settings = grid({**SETTINGS, "lr": [0.5, 1.0, 2.0]})
    first, refused, last = sweep(small_tree, settings, out=tmp_path)
    assert isinstance(first, Run)
    assert isinstance(refused, RunError)
    assert isinstance(last, Run)
    monkeypatch.undo()
    assert all(isinstance(run, Run) for run in sweep(small_tree, settings, out=tmp_path))


def test_a_sweep_on_data_that_changed_is_refused(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid({**SETTINGS, "lr": [0.5, 1.0]})
    sweep(small_tree, settings[:1], out=tmp_path)
    (tmp_path / "run").rename(tmp_path / "lr0.5")
    changed = dataclasses.replace(small_tree, train=small_tree.train[::-1])
    with pytest.raises(ConfigError, match=r"lr0\.5 holds a run on other data"):
        sweep(changed, settings, out=tmp_path)
    assert not (tmp_path / "lr1.0").exists()


def test_an_error_in_the_settings_speaks_of_the_sweep(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^sweep: lr must be above 0"):
        sweep(small_tree, grid({**SETTINGS, "lr": [1.0, -1.0]}), out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_built_when_its_turn_comes_and_gone_when_it_fails(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build, built, found = Model.__init__, weakref.WeakSet[Model](), []

    def noted(model: Model, *given: Any, **settings: Any) -> None:
        build(model, *given, **settings)
        built.add(model)

    monkeypatch.setattr(Model, "__init__", noted)

    class Count(Silent):
        def start(self, *told: Any) -> None:
            gc.collect()
            found.append(len(built))

    settings = grid({**SETTINGS, "model": ["mure"], "lr": [1e25, 1e26, 1.0, 2.0], "epochs": [6]})
    broken, *_ = sweep(small_tree, settings, out=tmp_path, progress=Count())
    assert isinstance(broken, DivergedError)
    assert f"in epoch {broken.epoch} (learning rate {broken.lr:g})" in str(broken)
    # The one in training, and those of the runs that are done and handed back.
    assert found == [1, 1, 1, 2]


@pytest.mark.gpu
def test_side_by_side_on_the_gpu_each_run_is_as_alone(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Its own batches, negatives and rate: the order in which a GPU adds is all that may differ."""
    settings = grid(
        {
            "dim": [10], "epochs": [20], "batch_size": [16], "validate_every": [5], "dtype": ["float64"],
            "lr": [1.0, 5.0], "seed": [0, 1],
        }
    )  # fmt: skip
    runs = sweep(small_tree, settings, out=tmp_path / "grid")
    for chosen, run in zip(settings, runs, strict=True):
        assert isinstance(run, Run)
        alone = murp.train(small_tree, out=tmp_path / f"{chosen['lr']}{chosen['seed']}", **chosen)
        assert_same_up_to_rounding(alone, run)
    broken, fine = sweep(
        small_tree, grid({"model": ["mure"], "dim": [5], "epochs": [6], "lr": [1e25, 1.0]}), out=tmp_path / "broken"
    )
    assert isinstance(broken, DivergedError)
    assert f"in epoch {broken.epoch} (learning rate {broken.lr:g})" in str(broken)
    assert isinstance(fine, Run)


def test_validations_by_two_protocols_are_not_compared(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    few = {**SETTINGS, "validate_candidates": [9]}
    with pytest.raises(ConfigError, match="give validate_candidates one value"):
        sweep(small_tree, grid({**few, "validate_candidates": [0, 9]}), out=tmp_path / "no", progress=Silent())
    sweep(small_tree, grid({**few, "seed": [0, 1]}), out=tmp_path / "sweep", progress=Silent())
    rows = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert all("valid_mrr_sampled" in row and "valid_mrr_standard" not in row for row in rows)
