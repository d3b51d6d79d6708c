"""How runs of the paper are trained, stored, taken up again and continued."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from murp.cli.main import main
from murp.errors import ConfigError, RunError
from murp.models import Model
from murp.paper import ITEMS, Experiments, experiments
from murp.paper.curve import curve
from murp.paper.done import is_done
from murp.paper.experiments import read_settings
from murp.paper.planned_run import PlannedRun, differences
from murp.provenance import identity
from murp.runs import checkpoint, folder
from murp.training.progress import Silent

RESULTS = Path(__file__).parents[2] / "results" / "paper"
MURE = PlannedRun("wordnet-mini", "mure", 5, 50)


@pytest.fixture
def copy(toys: Path, tmp_path: Path) -> Path:
    """The toys as in a clone: without the run folders, which are not kept there."""
    shutil.copytree(toys, tmp_path / "copy", ignore=shutil.ignore_patterns("work"))
    return tmp_path / "copy"


def content(out: Path) -> dict[str, bytes]:
    """Every stored result."""
    return {str(file.relative_to(out)): file.read_bytes() for file in [*out.glob("*.json"), *out.glob("runs/*.json")]}


def quick(out: Path, **options: Any) -> Experiments:
    return Experiments(out, device="cpu", quick=True, **options)


def with_epochs(out: Path, epochs: int, **options: Any) -> Experiments:
    """As if settings.toml had been edited."""
    changed = quick(out, **options)
    changed.settings = {**changed.settings, "training": {**changed.settings["training"], "epochs": epochs}}
    return changed


def never(*_: object, **__: object) -> None:
    raise AssertionError("trained again")


class TestWhatIsStored:
    def test_items_are_not_repeated(
        self, copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        for name in ITEMS:
            monkeypatch.setitem(ITEMS, name, never)
        before = content(copy)
        assert main(["paper", "run", "all", "--quick", "--out", str(copy)]) == 0
        said = capsys.readouterr().out.splitlines()
        assert [line.split(":")[0] for line in said] == list(ITEMS)
        assert all("stored already" in line and "--again" in line for line in said)
        assert content(copy) == before

    def test_runs_are_not_repeated(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(experiments, "train_all", never)
        before = content(copy)
        for name in ("table1", "figure3a", "table2"):
            ITEMS[name](quick(copy))
        after = content(copy)
        assert {name for name in before if before[name] != after[name]} <= {
            "table1.json",
            "figure3a.json",
            "table2.json",
        }

    @pytest.mark.usefixtures("on_small")
    def test_weights_that_are_gone_are_trained_again_and_the_record_stays(
        self, copy: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before = content(copy)
        assert main(["paper", "run", "figure4", "--quick", "--again", "--device", "cpu", "--out", str(copy)]) == 0
        assert f"{MURE.name}: stored, but its folder is gone" in capsys.readouterr().out
        after = content(copy)
        assert {name for name in before if before[name] != after[name]} == {"figure4.json"}
        models = [json.loads(files["figure4.json"])["models"]["murp"] for files in (before, after)]
        # On one machine the same seed gives the same bits.
        assert models[0]["norms"] == models[1]["norms"]

    @pytest.mark.parametrize("item", ITEMS)
    def test_an_item_is_done_with_its_settings_alone(self, toys: Path, item: str) -> None:
        assert is_done(quick(toys), item)
        changed = quick(toys)
        changed.settings = {**changed.settings, item: {**changed.settings[item], "data": ["another"]}}
        assert not is_done(changed, item)
        assert is_done(with_epochs(toys, 4), item) == (item in ("hierarchy", "flaws", "trials"))
        more = quick(toys)
        more.seeds = 2
        assert is_done(more, item) == (item in ("hierarchy", "flaws"))

    def test_an_item_whose_run_is_gone_is_not_done(self, copy: Path) -> None:
        (copy / "runs" / f"{MURE.name}.json").unlink()
        assert [item for item in ITEMS if not is_done(quick(copy), item)] == [
            "table1", "figure3a", "figure3b", "table2", "table3", "figure4", "figure5",
        ]  # fmt: skip

    def test_a_figure_of_an_older_form_is_not_done(self, copy: Path) -> None:
        item = json.loads((copy / "figure4.json").read_text())
        del item["cells"]
        (copy / "figure4.json").write_text(json.dumps(item))
        assert not is_done(quick(copy), "figure4")

    def test_every_result_names_its_code(self, toys: Path) -> None:
        for file in [*toys.glob("*.json"), *toys.glob("runs/*.json")]:
            stamped = json.loads(file.read_text())
            assert {name: stamped[name] for name in identity()} == identity()
            assert stamped["machine"]["device"]
            assert stamped["command"]

    def test_the_published_results_are_those_of_todays_settings(self) -> None:
        published = Experiments(RESULTS, seeds=3)
        assert [item for item in ITEMS if not is_done(published, item)] == []
        for file in sorted((RESULTS / "runs").glob("*.json")):
            settings = json.loads(file.read_text())["settings"]
            parts = settings["transformation"], settings["bias"]
            own = [settings[key] for key in ("data", "model", "dim", "lr", "seed")]
            epochs = None if settings["epochs"] == published.training["epochs"] else settings["epochs"]
            planned = PlannedRun(*own, parts, epochs, settings.get("initial_scale", Model.initial_scale))
            assert planned.name == file.stem
            assert differences(settings, published.config(planned)) == []


class TestOtherSettings:
    def test_a_stored_run_is_refused(self, copy: Path) -> None:
        with pytest.raises(
            ConfigError, match=r"mure-d5-lr50-seed0\.json is of a run with epochs = 3, not 2\..*--again"
        ):
            with_epochs(copy, 2).results([MURE])

    def test_the_device_is_none(self, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(experiments, "train_all", never)
        assert Experiments(copy, device="cuda", quick=True).results([MURE])[0]["name"] == MURE.name

    def test_a_setting_newer_than_the_record_had_its_default(self) -> None:
        experiments = Experiments(Path("nowhere"), quick=True)
        settings = {**experiments.settings["training"], **MURE.settings()}
        assert differences(settings, experiments.config(MURE)) == []
        assert differences({**settings, "dtype": "float64"}, experiments.config(MURE)) == [
            "dtype = 'float64', not 'float32'"
        ]

    @pytest.mark.usefixtures("on_small")
    def test_again_trains_it_anew(self, toys: Path, tmp_path: Path) -> None:
        for part in (Path("runs") / f"{MURE.name}.json", Path("work") / MURE.name):
            (tmp_path / part).parent.mkdir()
            copy = shutil.copytree if (toys / part).is_dir() else shutil.copy
            copy(toys / part, tmp_path / part)
        [result] = with_epochs(tmp_path, 1, again=True).results([MURE])
        assert result["settings"]["epochs"] == 1
        assert [epoch for epoch, _ in result["valid_curve"]] == [1]
        (tmp_path / "runs" / f"{MURE.name}.json").unlink()
        with pytest.raises(ConfigError, match=r"holds a run with epochs = 1, not 3\..*--again"):
            quick(tmp_path).results([MURE])


class Stop(Silent):
    """Ctrl-C after the first epoch of each run."""

    def epoch(self, record: dict[str, object]) -> None:
        if record["epoch"] == 1:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("on_small")
class TestInterrupted:
    def test_the_same_command_goes_on(
        self, toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setitem(ITEMS, "figure4", lambda experiments: experiments.results([MURE]))
        command = ["paper", "run", "figure4", "--quick", "--device", "cpu", "--out", str(tmp_path)]
        with monkeypatch.context() as patch:
            patch.setattr("murp.training.progress.usual", Stop)
            assert main(command) == 130
        stopped = capsys.readouterr()
        assert stopped.out == "training mure d=5, on wordnet-mini: 1 run\n"
        assert "the same command" in stopped.err
        assert "--resume" not in stopped.err
        assert not (tmp_path / "runs").exists()

        seconds = checkpoint_seconds(tmp_path)
        assert seconds > 0
        assert main(command) == 0
        assert f"continuing {MURE.name}" in capsys.readouterr().out
        found, undisturbed = (json.loads((out / "runs" / f"{MURE.name}.json").read_text()) for out in (tmp_path, toys))
        for same in ("metrics", "valid_curve", "selected_epoch"):
            assert found[same] == undisturbed[same]
        # What was spent before the interruption counts.
        assert found["training_seconds"] == pytest.approx(checkpoint_seconds(tmp_path), abs=0.001)
        assert found["training_seconds"] > seconds

    def test_a_run_that_diverged_before_it_was_stored(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = [PlannedRun("wordnet-mini", "mure", 2, lr) for lr in (20, 1e30)]
        with monkeypatch.context() as killed:
            killed.setattr(Experiments, "_store_run", interrupt)
            with pytest.raises(KeyboardInterrupt):
                quick(tmp_path).results(runs)
        good, bad = quick(tmp_path).results(runs)
        assert good["metrics"]["valid"]["standard"]["mrr"] > 0
        assert bad["failed"].endswith(f"became NaN or infinite in epoch {bad['failed_epoch']} (learning rate 1e+30).")
        assert bad["failed_epoch"] >= 1
        with pytest.raises(RunError, match=r"lr1e\+30.*the run diverged.*another learning rate"):
            quick(tmp_path).open(runs[1])
        [only] = quick(tmp_path).open(*runs)
        assert only.path.name == runs[0].name

    def test_weights_are_trained_to_their_end(self, copy: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            quick(copy, progress=Stop()).open(MURE)
        before = content(copy)
        [opened] = quick(copy).open(MURE)
        assert opened.metrics()[-1]["epoch"] == read_settings(quick=True)["training"]["epochs"]
        assert content(copy) == before

    def test_a_curve(self, tmp_path: Path) -> None:
        experiments = quick(tmp_path)
        first = curve(experiments, MURE, [1, 2])["points"]
        longer = curve(experiments, MURE, [1, 2, 3])["points"]
        assert longer[:2] == first
        # Epochs that lie between are not to be had from the same training; a new one passes through the same weights.
        assert curve(experiments, MURE, [1, 3])["points"] == [longer[0], longer[2]]
        other = quick(tmp_path)
        other.settings = {**other.settings, "training": {**other.settings["training"], "batch_size": 7}}
        with pytest.raises(ConfigError, match=r"curve-.* holds a run with batch_size = 512, not 7"):
            curve(other, MURE, [1, 3])


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def checkpoint_seconds(out: Path) -> float:
    return float(checkpoint.load(out / "work" / MURE.name / folder.LAST)[1]["seconds"])


class TestDamage:
    @pytest.mark.parametrize("text", ["{", "[]", "{}", '{"settings": {}}'])
    def test_of_a_run(self, copy: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
        (copy / "runs" / f"{MURE.name}.json").write_text(text)
        assert main(["paper", "run", "figure3a", "--quick", "--again", "--out", str(copy)]) == 1
        assert f"{MURE.name}.json" in capsys.readouterr().err

    @pytest.mark.parametrize(
        "damaged", [{"date": None}, {"quick": 1}, {"item": "table3"}, {"cells": [1]}, {"cells": [{"runs": 3}]}]
    )
    def test_of_an_item(self, copy: Path, damaged: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
        file = copy / "table1.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **damaged}))
        assert main(["paper", "run", "table1", "--quick", "--out", str(copy)]) == 1
        assert str(file) in capsys.readouterr().err

    def test_of_an_item_in_the_list(self, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (copy / "nell.json").write_text("{}")
        assert main(["paper", "list", "--out", str(copy)]) == 1
        assert "nell.json is not as `murp paper run nell` stores it" in capsys.readouterr().err

    def test_of_a_curve(self, toys: Path, tmp_path: Path) -> None:
        name = f"curve-{MURE.name}"
        shutil.copytree(toys / "work" / name, tmp_path / "work" / name)
        for text in ("{", "[1]", '{"points": [{}]}'):
            (tmp_path / "work" / f"{name}.json").write_text(text)
            with pytest.raises(RunError, match=f"{name}.json"):
                curve(quick(tmp_path), MURE, [1, 2, 3])


def test_parts_that_are_not_the_published_are_named() -> None:
    assert MURE.shape == "mure d=5, on wordnet-mini"
    swapped = PlannedRun("WN18RR", "murp", 40, 0.5, 1, ("swapped", "norm"))
    assert swapped.shape == "murp d=40, swapped, norm, on WN18RR"
    assert swapped.name == "WN18RR-murp-d40-lr0.5-seed1-swapped-norm"
