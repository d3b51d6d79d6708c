"""``murp plot``: every kind as a user asks for it, and what it refuses."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import murp
from murp.cli.main import main
from murp.graph import KnowledgeGraph
from murp.picture_kinds import KINDS, SEVERAL, Kind
from murp.plots import run_charts
from murp.training.progress import Silent

SETTINGS: Any = {
    "dim": 3, "epochs": 4, "lr": 2.0, "batch_size": 16, "negatives": 4, "validate_every": 2,
    "device": "cpu", "engine": "torch",
}  # fmt: skip
QUESTION = ("--head", "n5", "--relation", "parent")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture
def runs(folder: Path, small_tree: KnowledgeGraph) -> tuple[Path, Path]:
    """A run of MuRP and one of MuRE on the same tree, trained by the first test that needs them."""
    for model in ("murp", "mure"):
        if not (folder / model).exists():
            murp.train(small_tree, model=model, out=folder / model, progress=Silent(), **SETTINGS)
    return folder / "murp", folder / "mure"


# A kind that needs more than its name, or is drawn in several ways.
WAYS = {
    "disk": [
        ("disk", *QUESTION),
        ("disk", *QUESTION, "--projection", "paper"),
        ("disk",),
        ("disk", "--centre", "n3", "--edges", "parent", "--colour", "depth"),
        ("disk", "--centre", "n3", "--projection", "paper", "--colour", "relation"),
    ],
    "spheres": [("spheres",), ("spheres", "--centre", "n3")],
    "question": [("question", *QUESTION)],
    "relations": [("relations", "--split", "train", "--protocol", "paper")],
    "reliability": [],  # of a calibrated run, below
}


@pytest.mark.parametrize("arguments", [way for kind in KINDS for way in WAYS.get(kind, [(kind,)])], ids=" ".join)
def test_every_kind_draws(
    arguments: tuple[str, ...], runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for run, ending in zip(runs, ("svg", "png"), strict=True):
        assert main(["plot", str(run), *arguments, "--out", str(tmp_path / f"a.{ending}")]) == 0
        assert (tmp_path / f"a.{ending}").stat().st_size > 1000
        assert capsys.readouterr().out == f"picture: {tmp_path / f'a.{ending}'}\n"


def test_the_collector_rests_while_the_first_picture_imports_and_no_longer(
    runs: tuple[Path, Path], tmp_path: Path
) -> None:
    frozen, out = gc.get_freeze_count(), str(tmp_path / "a.png")
    assert main(["plot", str(runs[0]), "norms", "--out", out]) == 0
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, frozen)  # all was imported before: nothing is frozen
    told = """
import gc
from murp.cli.main import main
collected, torch_there = [], lambda: "torch" in __import__("sys").modules
def frozen():  # once it is, it stays so: to count is to walk over every object
    return collected[-1:] == [(True, True)] or gc.get_freeze_count() > 10**5
gc.callbacks.append(lambda phase, info: collected.append((torch_there(), frozen())))
main({})
print(gc.isenabled(), gc.get_freeze_count() > 10**5, (True, False) in collected)
"""
    arguments = ["plot", str(runs[0]), "norms", "--out", out, "--force"]
    alone = subprocess.run([sys.executable, "-c", told.format(arguments)], check=True, capture_output=True, text=True)
    assert alone.stdout.splitlines()[-1] == "True True False", (
        "a collection between PyTorch's first module and the freeze"
    )


def test_kinds_have_the_names_that_editors_offer() -> None:
    assert sorted(get_args(Kind)) == sorted(KINDS)


@pytest.mark.parametrize("kind", SEVERAL)
def test_two_runs_side_by_side(kind: str, runs: tuple[Path, Path], tmp_path: Path) -> None:
    more = QUESTION if kind == "question" else ()
    assert main(["plot", *map(str, runs), kind, *more, "--out", str(tmp_path / "a.pdf")]) == 0
    assert (tmp_path / "a.pdf").exists()


def test_a_picture_goes_into_the_run_folder_and_replaces_the_old_one(runs: tuple[Path, Path]) -> None:
    for _ in range(2):
        assert main(["plot", str(runs[0]), "norms"]) == 0
    assert (runs[0] / "norms.png").exists()


def test_a_picture_that_exists_is_replaced_only_by_force(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a.png"
    out.write_text("mine")
    assert main(["plot", str(runs[0]), "norms", "--out", str(out)]) == 1
    assert "a.png exists already. Choose another --out, or replace it with --force." in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main(["plot", str(runs[0]), "norms", "--out", str(out), "--force"]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("norms", "--head", "n5"), "--head is for disk and question, not for norms"),
        (("disk", "--split", "test"), "--split is for relations"),
        (("question",), "both --head and --relation"),
        (("disk", "--head", "n5"), "both --head and --relation"),
        (("disk", *QUESTION, "--edges", "next"), "leave out --centre, --edges and --colour"),
        (("disk", "--projection", "paper"), "--centre"),
        (("disk", "--centre", "nobody"), "unknown entity 'nobody'"),
        (("disk", "--edges", "nothing"), "unknown relation 'nothing'"),
        (("disk", "--out", "a.gif"), "not '.gif'"),
        (("norms", "--out", "nowhere/a.png"), "there is no folder nowhere. Make it first."),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: tuple[str, ...],
    message: str,
    runs: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["plot", str(runs[0]), *arguments]) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []


def test_one_run_at_a_time_in_the_disk(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", *map(str, runs), "disk"]) == 1
    assert "shows one run, not 2" in capsys.readouterr().err


def test_the_curves_are_those_of_the_metrics(runs: tuple[Path, Path]) -> None:
    run = murp.load(runs[0])
    upper, lower = run_charts.convergence_of([run]).axes
    valid = {record["epoch"]: record["valid"]["mrr"] for record in run.metrics() if "valid" in record}
    assert dict(zip(*upper.lines[0].get_data(), strict=True)) == valid  # type: ignore[arg-type]
    assert list(lower.lines[0].get_ydata()) == [record["loss"] for record in run.metrics()]  # type: ignore[arg-type]
    assert upper.get_ylabel() == "MRR (standard)"


def test_the_bars_are_those_of_the_evaluation_and_name_its_protocol(runs: tuple[Path, Path]) -> None:
    both = [murp.load(path) for path in runs]
    axes = run_charts.relations_of(both, "train", "paper").axes[0]
    assert axes.get_xlabel().startswith("hits@10, protocol paper")
    names = [tick.get_text().split()[0] for tick in axes.get_yticklabels()]
    assert names == ["parent", "next"]  # the tree before the ring
    reports = [run.evaluate("train", "paper").by_relation for run in both]
    expected = [report[name].hits[10] for report in reports for name in names]
    assert [bar.get_width() for bar in axes.patches] == expected  # type: ignore[attr-defined]


def test_runs_that_look_alike_are_told_apart_by_their_folder(runs: tuple[Path, Path]) -> None:
    run = murp.load(runs[0])
    assert list(run_charts.named([run, murp.load(runs[1])])) == ["MuRP d=3", "MuRE d=3"]
    other = murp.load(runs[0])
    other.path = Path("elsewhere")
    assert list(run_charts.named([run, other])) == [f"MuRP d=3, {runs[0]}", "MuRP d=3, elsewhere"]


def test_norms_are_those_of_the_points(runs: tuple[Path, Path]) -> None:
    run = murp.load(runs[0])
    (points,) = run_charts.norms_of([run]).axes[0].collections
    norms, biases = np.asarray(points.get_offsets()).T
    assert norms == pytest.approx(run.model.parameters["entity"].norm(dim=1).numpy(), rel=1e-6)
    assert biases == pytest.approx(run.model.parameters["subject_bias"].numpy())


def test_reliability_is_that_of_the_calibration_and_refused_without_one(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    assert main(["plot", str(folder), "reliability"]) == 1
    assert f"run `murp calibrate {folder}` first" in capsys.readouterr().err
    run = murp.load(folder)
    found = run.calibrate(method="isotonic")
    axes = run_charts.reliability_of([run]).axes
    for part, upper, lower in zip(("shown", "all"), axes[:2], axes[2:], strict=True):
        drawn = {str(line.get_label()).split(",")[0]: line for line in upper.get_legend_handles_labels()[0]}
        assert set(drawn) == {"uncalibrated", "isotonic"}
        for kind, line in zip(drawn, lower.lines, strict=True):
            bins = [b for b in found.test[part][kind]["reliability"] if b["count"]]
            with_facts = [b for b in bins if b["observed"]]
            assert list(drawn[kind].lines[0].get_xdata()) == [b["predicted"] for b in with_facts]
            assert list(drawn[kind].lines[0].get_ydata()) == [b["observed"] for b in with_facts]
            assert list(line.get_ydata()) == [b["count"] for b in bins]
    assert main(["plot", str(folder), "reliability"]) == 0
    assert (folder / "reliability.png").exists()
