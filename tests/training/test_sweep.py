"""A grid of settings: every combination an ordinary run, trained as if alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import murp
from murp.errors import ConfigError, NotFiniteError
from murp.graph import KnowledgeGraph
from murp.runs import Run, checkpoint
from murp.training import sweep
from murp.training.grid import grid, run_names

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
    assert isinstance(broken, NotFiniteError)
    assert isinstance(fine, Run)
    assert "failed" in json.loads((tmp_path / "sweep.json").read_text())[0]
    tables, _ = checkpoint.load(tmp_path / "lr1e+25" / "last.safetensors")
    assert all(values.isfinite().all() for values in tables.values())


@pytest.mark.gpu
def test_side_by_side_on_the_gpu_each_run_learns_as_alone(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = grid(
        {"dim": [10], "epochs": [150], "batch_size": [16], "validate_every": [20], "lr": [1.0, 5.0], "seed": [0, 1]}
    )
    runs = sweep(small_tree, settings, out=tmp_path / "grid")
    for chosen, run in zip(settings, runs, strict=True):
        assert isinstance(run, Run)
        alone = murp.train(small_tree, out=tmp_path / f"{chosen['lr']}{chosen['seed']}", **chosen)
        assert run.evaluate("train").mrr == pytest.approx(alone.evaluate("train").mrr, abs=0.1)
    broken, fine = sweep(
        small_tree, grid({"model": ["mure"], "dim": [5], "epochs": [6], "lr": [1e25, 1.0]}), out=tmp_path / "broken"
    )
    assert isinstance(broken, NotFiniteError)
    assert isinstance(fine, Run)
