"""One cell of the paper by one command, and the settings of a stored run to repeat it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from murp.cli.main import main
from murp.config import Config
from murp.errors import ConfigError, RunError
from murp.paper import Experiments, running
from murp.paper.cells import WITH_CELLS, cells
from murp.paper.planned_run import differences

ROOT = Path(__file__).parents[2]


def test_a_cell_is_trained_with_its_plan_before_and_its_result_after(on_small: None, tmp_path: Path) -> None:
    said: list[str] = []
    only = "wordnet-mini/murp/5"
    running.run(["table1"], tmp_path, device="cpu", quick=True, only=only, say=said.append)
    assert said[0] == f"table1, {only}: 1 run of 3 epochs, learning rate 50"
    assert said[1].startswith("about ")
    name = "wordnet-mini-murp-d5-lr50-seed0"
    assert any(line.startswith(f"{name}: MRR on test ") and "murp paper config" in line for line in said)
    assert said[-1].startswith("mean of 1: MRR ")
    assert [p.name for p in (tmp_path / "runs").iterdir()] == [f"{name}.json"]
    assert not (tmp_path / "table1.json").exists()  # one cell is no table
    again: list[str] = []
    running.run(["table1"], tmp_path, device="cpu", quick=True, only=only, say=again.append)
    assert "stored already" in again[1]
    assert again[-1] == said[-1]


def test_a_stored_run_gives_its_settings_as_a_file(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = sorted((toys / "runs").glob("*.json"))[0].stem
    assert main(["paper", "config", name, "--out", str(toys)]) == 0
    config = Config.from_mapping(tomllib.loads(capsys.readouterr().out), "printed")
    stored = json.loads((toys / "runs" / f"{name}.json").read_text())["settings"]
    assert not differences(stored, config)
    assert config == running.config(name, toys)
    with pytest.raises(RunError, match=f"has no stored run '{name}x'. Closest: {name}"):
        running.config(f"{name}x", toys)
    with pytest.raises(RunError, match="Give the folder with the stored results as --out"):
        running.config(name, toys / "elsewhere")


def test_what_is_no_cell_is_refused_with_what_there_is(tmp_path: Path) -> None:
    for items, only, words in (
        (["table1"], "WN18RR/murp/41", "has no cell 'WN18RR/murp/41': choose from WN18RR/mure/40, WN18RR/murp/40"),
        (["table2"], "WN18RR/murp/40", "no cells that run by themselves; these items have: table1"),
        (["table1", "nell"], "WN18RR/murp/40", "name that item, and no other"),
        (["all"], "WN18RR/murp/40", "name that item, and no other"),
    ):
        with pytest.raises(ConfigError, match=words):
            running.run(items, tmp_path / "out", device="cpu", only=only, say=lambda _: None)
    assert not (tmp_path / "out").exists()


def test_cells_are_those_that_were_stored_when_the_item_was_run(tmp_path: Path) -> None:
    experiments = Experiments(tmp_path, device="cpu")
    for item in WITH_CELLS:
        found = [run.name for run in cells(experiments, item).values()]
        stored = json.loads((ROOT / "results" / "paper" / f"{item}.json").read_text())
        assert set(found) == {cell["runs"][0] for cell in stored["cells"]}, item
