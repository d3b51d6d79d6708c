"""A search: kept, continued after a kill, by several processes; judged by valid, never by test."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import murp
from examples import PATIENCE
from murp.cli.main import main
from murp.errors import ConfigError, MurpError, NotFiniteError
from murp.graph import KnowledgeGraph
from murp.training import loop
from murp.tuning import results, search, trial
from murp.tuning.search import filled
from murp.tuning.study import alone, interrupted, opened
from trees import tree

pytest.importorskip("optuna", reason="needs Optuna: pip install murp[tune]")

QUICK: Any = {"dim": 2, "epochs": 9, "batch_size": 16}
SPACE = {"negatives": [1, 2, 5], "lr": "0.5..20"}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> results.Tuning:
    place = tmp_path_factory.mktemp("tune")
    return murp.tune(tree(), trials=12, storage=place / "t.db", space=SPACE, **QUICK)


def test_every_trial_is_kept_and_the_best_is_a_run(searched: results.Tuning) -> None:
    assert [one.number for one in searched] == list(range(12))
    first = searched[0]
    assert first.settings == {"negatives": 1, "lr": 20.0}, "as near to the defaults as the space lets it be"
    states = [one.state for one in searched]
    assert states[0] == "complete"
    assert states.count("stopped") >= 4, "ASHA stops most"
    assert all(one.curve and max(one.curve.values()) == one.mrr for one in searched)
    assert {max(one.curve) for one in searched if one.state == "stopped"} <= {1, 3}, "a ninth and a third of the epochs"
    assert {max(one.curve) for one in searched if one.state == "complete"} == {9}
    assert searched.best_mrr == max(one.mrr or 0 for one in searched if one.state == "complete")
    run = murp.load(searched.best_run)
    assert run.state["best_mrr"] == searched.best_mrr
    assert run.config.lr == searched.best_settings["lr"]
    assert (run.config.batch_size, run.config.epochs) == (16, 9)
    runs = searched.best_run.parent
    assert [path.name for path in runs.iterdir()] == [searched.best_run.name], "the others take no room"
    assert {"number", "state", "mrr", "lr", "negatives"} <= set(searched.columns())


def test_the_report_has_the_curves_and_what_matters(searched: results.Tuning) -> None:
    text = (searched.report / "report.md").read_text()
    assert f"**Best: MRR {searched.best_mrr:.4f}**" in text
    assert "test was not looked at" in text
    assert "| lr |" in text
    assert "Too few trials" not in text
    command = next(line for line in text.splitlines() if line.startswith("murp train"))
    assert f"--lr {searched.best_settings['lr']}" in command
    with (searched.report / "curves.csv").open() as file:
        points = list(csv.DictReader(file))
    assert len(points) == sum(len(one.curve) for one in searched)
    with (searched.report / "trials.csv").open() as file:
        assert [int(row["number"]) for row in csv.DictReader(file)] == list(range(12))
    assert (searched.report / "tuning.png").stat().st_size > 1000


def test_the_same_search_goes_on_and_another_is_refused(searched: results.Tuning) -> None:
    again = murp.tune(tree(), trials=12, storage=searched.storage, space=SPACE, **QUICK)
    assert list(again) == list(searched)
    more = murp.tune(tree(), trials=13, storage=searched.storage, space=SPACE, **QUICK)
    assert list(more)[:12] == list(searched)
    assert len(more) == 13
    with pytest.raises(ConfigError, match=r"another search \(space of lr: 0\.5\.\.20 there, 1\.\.2 asked for"):
        murp.tune(tree(), trials=20, storage=searched.storage, space={**SPACE, "lr": "1..2"}, **QUICK)
    with pytest.raises(ConfigError, match=r"facts: .* there"):
        murp.tune(tree(4), trials=20, storage=searched.storage, space=SPACE, **QUICK)


def test_valid_decides_and_test_is_not_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    evaluate = loop.evaluate

    def noted(model: Any, graph: KnowledgeGraph, split: Any, **others: Any) -> Any:
        asked.append(split)
        return evaluate(model, graph, split, **others)

    monkeypatch.setattr(loop, "evaluate", noted)
    monkeypatch.setattr("murp.runs.run.evaluate", noted)
    found = murp.tune(tree(), trials=2, storage=tmp_path / "t.db", space=SPACE, **QUICK)
    assert set(asked) == {"valid"}
    assert found.best_mrr > 0


def test_an_interrupted_trial_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "t.db"
    epoch = trial.Reported.epoch

    def stop(self: trial.Reported, record: dict[str, Any]) -> None:
        epoch(self, record)
        if self.trial.number == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(trial.Reported, "epoch", stop)
    space = {"lr": [4, 5]}
    settings: Any = {**QUICK, "negatives": 2, "save_every": 0.0}
    with pytest.raises(KeyboardInterrupt):
        murp.tune(tree(), trials=3, storage=place, space=space, **settings)
    before = interrupted(opened(place, seed=0))
    assert [one.number for one in before] == [1]
    monkeypatch.setattr(trial.Reported, "epoch", epoch)
    found = murp.tune(tree(), trials=3, storage=place, space=space, **settings)
    assert [one.number for one in found] == [0, 1, 2]
    assert all(one.state in ("complete", "stopped") for one in found)
    assert found[1].settings["lr"] == before[0].params["lr"]
    assert not interrupted(opened(place, seed=0))


@pytest.mark.usefixtures("copied")
def test_a_killed_search_of_two_workers_loses_no_trial(tmp_path: Path) -> None:
    graph = tmp_path / "graph"
    tree().save(graph)
    place = tmp_path / "t.db"
    words = ["tune", "--data", str(graph), "--storage", str(place), "--dim", "2", "--epochs", "9", "--save-every", "0"]
    words += ["--negatives", "2", "--batch-size", "16", "--space", "lr=0.5..20"]
    command = [sys.executable, "-m", "murp", *words, "--trials", "300", "--workers", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        trials = 0
        while trials < 3:  # on a new machine a line about compiling comes first
            line = process.stderr.readline()
            assert line, "it ended before its third trial"
            trials += line.startswith("trial ")
        os.kill(process.pid, signal.SIGKILL)
        process.stderr.read()  # to the end: the workers end with their parent
    before = results.read(place)
    assert 3 <= len(before) < 300
    assert len({one.settings["lr"] for one in before}) == len(before), "no two draw the same"
    assert main([*words, "--trials", str(len(before)), "--quiet"]) == 0
    after = results.read(place)
    assert [one.number for one in after] == list(range(len(after))), "what was begun and had not chosen yet as well"
    assert all(one.state in ("complete", "stopped") for one in after)
    for old in before:  # by number: a trial that had not chosen yet was not among them, and later ones were
        new = after[old.number]
        assert old.settings == new.settings
        assert old.curve.items() <= new.curve.items(), "what was known is kept"
    assert murp.load(after.best_run).config.data == str(graph)


def test_a_search_that_was_killed_before_its_first_trial_has_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one, with the default settings, is in the storage already."""
    handed_out: list[list[int | None]] = []
    monkeypatch.setattr(search, "_work", lambda task, graph, tickets, worker: handed_out.append(list(tickets)))
    for _ in range(2):
        murp.tune(tree(), trials=3, storage=tmp_path / "t.db", space=SPACE, **QUICK)
    (first,) = interrupted(opened(tmp_path / "t.db", seed=0))
    assert handed_out == [[first._trial_id, None, None]] * 2


@pytest.mark.parametrize("before", [0, 2])
def test_a_trial_that_had_begun_and_not_chosen_yet_is_continued(before: int, tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    if before:
        murp.tune(tree(), trials=before, storage=place, space=SPACE, **QUICK)
    opened(place, seed=0, make=True).ask()
    murp.tune(tree(), trials=before + 2, storage=place, space=SPACE, **QUICK)
    found = results.read(place)
    assert [one.number for one in found] == list(range(before + 2))
    assert all(one.state in ("complete", "stopped") for one in found)


def test_no_trial_waits_for_whichever_worker_is_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In SQLite two workers that ask at the same moment would both get it."""
    handed_out: list[list[int | None]] = []
    monkeypatch.setattr(search, "_work_together", lambda task, graph, tickets, workers: handed_out.append(tickets))
    place = tmp_path / "t.db"
    made = opened(place, seed=0, make=True)
    made.enqueue_trial({})  # as a search that was killed before its first trial left it in version 0.1
    murp.tune(tree(), trials=3, workers=2, storage=place, space=SPACE, **QUICK)
    assert [one.state.name for one in opened(place, seed=0).get_trials()] == ["RUNNING"]
    assert [ticket is None for ticket in handed_out[0]] == [False, True, True]


def test_many_trials_are_handed_out_before_a_worker_is_there() -> None:
    """A pipe holds a few thousand of them: who fills it waits for a reader."""
    boxes: list[Any] = []
    filling = threading.Thread(target=lambda: boxes.append(filled([None] * 20_000, 2)), daemon=True)
    filling.start()
    filling.join(PATIENCE)
    (box,) = boxes
    assert [box.get() for _ in range(20_002)] == [None] * 20_000 + ["end"] * 2


def test_time_that_is_over_ends_the_search_and_not_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    advance = trial.Reported.advance

    def over(self: trial.Reported, *given: Any) -> None:
        assert self.ends is not None
        self.ends = 0.0  # long ago
        advance(self, *given)

    long: Any = {**QUICK, "epochs": 100_000, "validate_every": 100_000}
    monkeypatch.setattr(trial.Reported, "advance", over)
    found = murp.tune(tree(), trials=3, storage=tmp_path / "t.db", space=SPACE, timeout=3600, **long)
    assert [one.state for one in found] == ["unfinished"]
    with pytest.raises(MurpError, match=r"no trial of .* was trained to its end yet"):
        _ = found.best_trial
    assert "unfinished" in (found.report / "report.md").read_text()


def test_a_trial_that_diverges_is_bad_and_one_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = trial.training.train

    def troubled(*given: Any, out: Path, **others: Any) -> Any:
        if out.name.endswith("1"):
            raise NotFiniteError("it diverged")
        if out.name.endswith("2"):
            raise MurpError("no memory")
        return train(*given, out=out, **others)

    monkeypatch.setattr(trial.training, "train", troubled)
    found = murp.tune(tree(), trials=4, storage=tmp_path / "t.db", space=SPACE, **QUICK)
    assert [one.state for one in found][:3] == ["complete", "diverged", "failed"]
    assert (found[1].mrr, found[2].error) == (None, "no memory")

    def failing(*given: Any, **others: Any) -> Any:
        raise MurpError("no memory")

    monkeypatch.setattr(trial.training, "train", failing)
    with pytest.raises(MurpError, match="the first 3 trials failed, the last one: no memory"):
        murp.tune(tree(), trials=9, storage=tmp_path / "u.db", space=SPACE, **QUICK)


def test_the_command_says_the_same(
    searched: results.Tuning, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "--storage", str(searched.storage), "--report", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["best"]["mrr"] == searched.best_mrr
    assert main(["tune", "--storage", str(searched.storage), "--report"]) == 0
    assert f"best run: {searched.best_run}" in capsys.readouterr().out
    place = tmp_path / "t.db"
    assert main(["tune", "--space", "model=murp,rescal", "regularizer=none,dura", "--storage", str(place)]) == 1
    assert "the search space contradicts itself" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [], "nothing half-written"
    assert main(["tune", "--report"]) == 1
    assert "--report needs the --storage" in capsys.readouterr().err
    assert main(["tune", "--report", "--storage", str(place)]) == 1
    assert "there is no storage of a search at" in capsys.readouterr().err


def test_without_optuna_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MurpError, match=r"tuning needs optuna, which is not installed: pip install 'murp\[tune\]'"):
        murp.tune(tree(), trials=1, storage=tmp_path / "t.db", space=SPACE, **QUICK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"trials": "5"}, "trials must be a whole number, not '5'"),
        ({"trials": -1}, "trials must be at least 0, not -1"),
        ({"workers": 1.5}, "workers must be a whole number, not 1.5"),
        ({"timeout": 0}, "timeout must be above 0, not 0"),
    ],
)
def test_an_argument_that_cannot_be_is_named(options: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        murp.tune(tree(), storage=tmp_path / "t.db", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_storage_that_is_none_or_in_use_is_told(tmp_path: Path) -> None:
    place = tmp_path / "t.db"
    place.write_text("this is no database, and is longer than its head would be " * 10)
    with pytest.raises(ConfigError, match="cannot be used as a storage"):
        murp.tune(tree(), trials=1, storage=place, space=SPACE, **QUICK)
    for name in ("", "a\0b", str(tmp_path), os.fsdecode(b"caf\xe9.db"), "/dev/null/t.db"):
        with pytest.raises(ConfigError, match="storage"):
            murp.tune(tree(), trials=1, storage=name, space=SPACE, **QUICK)
    with alone(tmp_path / "u.db"), pytest.raises(MurpError, match="another `murp tune` works on"):
        murp.tune(tree(), trials=1, storage=tmp_path / "u.db", space=SPACE, **QUICK)
