"""The rows of the field page: legal, complete, each one command; trained once, resumed, stored with evidence."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import torch
from test_benchmarks import check

import field
import murp
from field_rows import Row, chosen, rows, same
from measure import toy_graph
from murp import registry
from murp.cli.main import parser
from murp.cli.settings import given_settings
from murp.config import Config
from murp.engines import Chunk
from murp.recipes import RECIPES, completed
from murp.training.progress import Silent
from murp.training.state import State

ROWS = rows()
QUICK = "umls-mure-d40"


def test_every_row_has_a_name_of_its_own_and_every_model_the_sizes_that_the_page_asks_for() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    wanted = {
        ("WN18RR", 40),
        ("WN18RR", 200),
        ("FB15k-237", 40),
        ("FB15k-237", 200),
        ("NELL-995-h100", 40),
        ("UMLS", 40),
    }
    published = {("WN18RR", 32), ("FB15k-237", 32)}  # the dimension that RotH and AttH were published with
    for model in {row.model for row in ROWS}:
        expected = wanted | published if model in ("roth", "atth") else wanted
        assert expected <= {(row.data, row.dim) for row in ROWS if row.model == model and not row.recipe}
    # A model that is new may wait for its rows; those that the page was made for may not.
    asked_for = {"murp", "mure", "transe", "distmult", "complex", "rescal", "rotate", "tucker", "conve", "roth", "atth"}
    assert asked_for <= {row.model for row in ROWS} <= set(registry.MODELS)


def test_no_row_is_expected_to_take_three_minutes_on_the_gpu() -> None:
    assert all(0 < row.seconds() < 180 for row in ROWS)


@pytest.mark.parametrize(
    "name", ["wn18rr-tucker-d200", "fb15k-237-hybonet-d40", "umls-complex-d40", "wn18rr-best-d200"]
)
def test_the_command_of_a_row_is_the_row(name: str) -> None:
    (row,) = chosen([name], ROWS)
    words = shlex.split(row.command(seed=3))[1:]
    options = parser(words).parse_args(words)
    given = given_settings(options) | ({"recipe": options.recipe} if options.recipe else {})
    assert same(Config(**completed(given)).to_dict(), row.config(3))
    assert not same(row.config(2).to_dict(), row.config(3))


def test_recipes_name_results_of_rows_that_are_theirs() -> None:
    names = {row.name: row for row in ROWS}
    for name, recipe in RECIPES.items():
        for pattern in recipe.stored:
            if pattern.startswith("field/"):
                row = names[pattern.removeprefix("field/").removesuffix("-seed*.json")]
                as_named = Config(**completed({"data": row.data, "dim": row.dim, "recipe": name}))
                assert row.recipe == name or row.config(0) == as_named


def quick(folder: Path, *words: str) -> list[str]:
    return ["--quick", "--only", QUICK, "--out", str(folder / "out"), "--runs", str(folder / "runs"), *words]


def test_rows_are_trained_once_and_stored_with_their_evidence(tmp_path: Path) -> None:
    assert field.main(quick(tmp_path, "--seeds", "2")) == 0
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"{QUICK}-seed0.json", f"{QUICK}-seed1.json"]
    for seed, file in enumerate(files):
        stored = json.loads(file.read_text())
        check(stored)
        figures = stored["figures"]
        assert (stored["settings"]["seed"], stored["settings"]["data"], figures["row"]) == (seed, "toy", QUICK)
        assert set(figures["test"]) == {"standard", "paper"}
        assert figures["valid"]["standard"]["mrr"] == max(figures["valid_mrr_standard"].values())
        assert figures["seconds"] == pytest.approx(figures["training_seconds"] + figures["validation_seconds"])
        assert (figures["resumed"], figures["side_by_side"]) == (False, 1)
    before = [file.stat().st_mtime_ns for file in files]
    assert field.main(quick(tmp_path, "--seeds", "2")) == 0
    assert [file.stat().st_mtime_ns for file in files] == before
    assert list((tmp_path / "runs").iterdir()) == []


class Stopped(Silent):
    """Ctrl-C at the end of the first epoch."""

    def epoch(self, record: dict[str, object]) -> None:
        raise KeyboardInterrupt


def test_a_row_that_was_interrupted_goes_on_and_one_that_has_changed_begins_anew(tmp_path: Path) -> None:
    (row,) = chosen([QUICK], ROWS)
    graph = toy_graph()
    path = tmp_path / "runs" / f"{QUICK}-seed0"
    settings = {**row.config(0).replace(**field.TOY, device="cpu", compile_after=0.0).to_dict()}
    del settings["data"]
    for others, resumed in (({}, True), ({"lr": 3.0}, False)):
        with pytest.raises(KeyboardInterrupt):
            murp.train(graph, out=path, progress=Stopped(), **{**settings, **others})
        assert field.main(quick(tmp_path)) == 0
        file = tmp_path / "out" / f"{QUICK}-seed0.json"
        assert json.loads(file.read_text())["figures"]["resumed"] is resumed
        file.unlink()


def test_what_steps_take_is_stored_apart(tmp_path: Path) -> None:
    assert field.main(quick(tmp_path, "--step-times", "60")) == 0
    (file,) = (tmp_path / "out" / "times").iterdir()
    stored = json.loads(file.read_text())
    figures = stored["figures"]
    assert stored["settings"]["epochs"] == field.TOY["epochs"]
    assert figures["seconds_a_step"]["repeats"] >= 1
    few, many = (figures["seconds_a_step"][which] * figures["steps"] for which in ("least", "most"))
    assert few * (1 - 1e-9) <= figures["expected_seconds"] <= many * (1 + 1e-9)


def test_a_training_ends_when_its_steps_are_measured() -> None:
    watch = field.Stopwatch(enough=2.0)
    watch.start(State(), 0, 100, 7)
    assert watch.steps == 700
    chunk = Chunk(torch.zeros(10, 4, 3, dtype=torch.int64), 5, 1, 0)
    for seconds in (9.0, 1.5):  # the first does not count, and one alone is not enough
        watch.advance(State(), chunk, seconds, 0.1)
    with pytest.raises(field.EnoughError):
        watch.advance(State(), chunk, 0.5, 0.1)
    assert watch.seconds_a_step == [0.15, 0.05]
    assert (watch.spent, watch.counted) == (2.0, 20)


def test_the_first_seconds_on_a_gpu_do_not_count() -> None:
    watch = field.Stopwatch(enough=1.0, early=10.0)
    watch.start(State(), 0, 100, 7)
    chunk = Chunk(torch.zeros(10, 4, 3, dtype=torch.int64), 5, 1, 0)
    for seconds in (1.0, 5.0, 3.0):
        watch.advance(State(), chunk, seconds, 0.1)
    assert watch.seconds_a_step == []
    watch.advance(State(), chunk, 1.5, 0.1)  # ends after the first ten seconds
    assert (watch.seconds_a_step, watch.counted) == ([0.15], 10)


def test_trainings_are_processes_and_their_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in the place of the benchmark: one row ends, one fails, one never would."""
    program = tmp_path / "program.py"
    program.write_text(
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell in the background switches it off
        "name = sys.argv[sys.argv.index('--only') + 1]\n"
        "print(name, flush=True)\n"
        "time.sleep(600) if 'complex' in name else sys.exit('conve' in name)\n"
    )
    monkeypatch.setattr(field, "__file__", str(program))
    monkeypatch.setattr(field, "START", 0.0)
    monkeypatch.setattr(Row, "seconds", lambda row: 0.1)
    words = ["--only", "umls-complex-*", "umls-conve-*", "umls-rescal-*", "--out", str(tmp_path / "out"), "--jobs", "3"]
    assert field.main([*words, "--runs", str(tmp_path / "runs"), "--timeout", "8"]) == 1
    logs = {file.name: file.read_text() for file in (tmp_path / "runs").glob("*.log")}
    assert logs["umls-rescal-d40-seed0.log"] == "umls-rescal-d40\n"
    assert len(logs) == 3


def test_the_plan_says_what_rows_should_take(capsys: pytest.CaptureFixture[str]) -> None:
    assert field.main(["--plan", "--only", "*-best-d40"]) == 0
    text = capsys.readouterr().out
    assert "murp train --data WN18RR --dim 40 --recipe wn18rr --seed 0" in text
    assert "2 rows, " in text
    assert field.main(["--plan", "--only", "nothing"]) == 1
