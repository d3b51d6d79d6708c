"""What Python shows of an object."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import murp
from murp.errors import ConfigError, RunError
from murp.graph import KnowledgeGraph, Vocabulary
from murp.training.progress import Silent


def test_what_python_shows_fits_a_line(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(
        small_tree, out=tmp_path / "run", dim=3, epochs=1, lr=1.0, device="cpu", engine="torch", progress=Silent()
    )
    calibration = run.calibrate()
    shown = {
        repr(run): f"Run('{tmp_path / 'run'}', murp d=3 on tree, epoch 1)",
        repr(small_tree): "KnowledgeGraph('tree': 63 entities, 2 relations, 76 train, 9 valid, 9 test)",
        repr(small_tree.entities): "Vocabulary(63 entities: 'n0', 'n1', 'n2', …)",
        repr(small_tree.relations): "Vocabulary(2 relations: 'parent', 'next')",
        repr(Vocabulary("relation", ["only"])): "Vocabulary(1 relation: 'only')",
        repr(Vocabulary("entity", [])): "Vocabulary(0 entities)",
        repr(run.model): "MuRP(poincare d=3, 63 entities, 4 relations with reciprocals; torch.float32: "
        "entity, subject_stretch, translation, subject_bias, object_bias)",
        repr(calibration): f"Calibration({calibration.words()})",
    }
    assert list(shown) == list(shown.values())


@pytest.mark.parametrize("settings", [{"split_seed": 9}, {"columns": "head=1,relation=2,tail=3"}, {"no_header": True}])
def test_a_graph_that_is_there_is_not_read_otherwise(
    settings: dict[str, Any], small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    """The run folder would say that it was, and could not be repeated."""
    for ask in (murp.train, murp.sweep):
        with pytest.raises(ConfigError, match=f"{next(iter(settings))} sets how data is read"):
            ask(small_tree, out=tmp_path / "run", epochs=1, **settings)
    assert not list(tmp_path.iterdir())


def test_a_run_that_exists_is_refused_in_words_for_both_interfaces(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = {"dim": 2, "epochs": 1, "device": "cpu", "engine": "torch", "progress": Silent()}
    murp.train(small_tree, out=tmp_path / "run", **settings)
    with pytest.raises(RunError, match=r"Choose another folder.*murp\.resume in Python"):
        murp.train(small_tree, out=tmp_path / "run", reuse=False, **settings)


def test_a_path_that_is_no_run_is_answered_with_those_that_are(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = {"dim": 2, "epochs": 1, "device": "cpu", "engine": "torch", "progress": Silent()}
    with pytest.raises(RunError, match=r"there is no run folder at \S+\.$"):
        murp.load(tmp_path / "nothing")
    for name in ("first", "mine"):
        murp.train(small_tree, out=tmp_path / name, **settings)
    with pytest.raises(RunError, match=rf"Did you mean {tmp_path / 'first'}\?$"):
        murp.load(tmp_path / "frist")
    with pytest.raises(RunError, match=rf"Run folders there: {tmp_path / 'first'}, {tmp_path / 'mine'}\.$"):
        murp.load(tmp_path)
    with pytest.raises(RunError, match=r"murp train --out. makes one\.$"):
        murp.load(tmp_path / "first" / "graph")


def test_modules_that_messages_name_need_no_import() -> None:
    """In a process of its own: here they are imported already. What needs neither is as quick as before."""
    code = """
import sys, murp
assert {"recipes", "threads"} <= set(dir(murp))
assert not {"murp.recipes", "murp.threads"} & set(sys.modules)
assert "wn18rr" in murp.recipes.RECIPES
murp.threads.use(1)
assert murp.threads.count() == 1
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("function", [murp.train, murp.sweep, murp.tune])
def test_how_threads_are_set_is_told(function: Callable[..., object], small_tree: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"threads is not a setting of a run: .* call murp\.threads\.use\(N\)"):
        function(small_tree, threads=1)


def test_a_setting_of_another_objective_is_told_with_the_default_of_the_model(small_tree: KnowledgeGraph) -> None:
    with pytest.raises(ConfigError, match=r"rank.*; not of one-vs-all \(the default of distmult\)\."):
        murp.train(small_tree, model="distmult", negatives=5)
