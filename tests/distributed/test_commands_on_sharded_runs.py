"""Every command reads a run whose weights are in one file, in a folder with one file, and in a folder with several."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from run_on_ranks import on_ranks

import murp
from murp.cli.main import main, parser
from murp.prediction import approximate
from murp.runs import checkpoint, folder
from murp.testing import tree
from murp.training import train
from murp.training.progress import Silent
from sharded_checkpoints import shard_run

SETTINGS: dict[str, Any] = {
    "dim": 6, "epochs": 2, "batch_size": 20, "negatives": 2, "device": "cpu", "validate_every": 1, "lr": 0.02,
    "engine": "torch",
}  # fmt: skip
QUESTION = ("--head", "n40", "--relation", "next")

# How each command is asked of a RUN, which may be changed; OUT is a path that does not exist.
WAYS = {
    "train": [("--resume", "RUN", "--epochs", "3"), ("--init-from", "RUN", "--data", "GRAPH", "--dim", "6",
                                                     "--epochs", "1", "--out", "OUT")],
    "extend": [("RUN", "--facts", "FACTS", "--out", "OUT")],
    "reconstruct": [("HIERARCHY",)],
    "evaluate": [("RUN",), ("RUN", "RUN", "--checkpoint", "last")],
    "compare": [("RUN", "RUN")],
    "predict": [("RUN", *QUESTION), ("RUN", *QUESTION, "--approximate"), ("RUN", *QUESTION, "--types")],
    "discover": [("RUN",)],
    "calibrate": [("RUN",)],
    "classify": [("RUN",)],
    "nearest": [("RUN", "n3"), ("RUN", "n3", "--approximate")],
    "index": [("RUN", "--cells", "3")],
    "info": [("RUN",)],
    "plot": [("RUN", "disk", "--out", "OUT.svg")],
    "explore": [("RUN", "--export", "OUT.html")],
    "serve": [("RUN", "--port", "0"), ("RUN", "--port", "0", "--approximate")],
    "analyze": [("--run", "RUN")],
    "export": [("RUN", "--to", "npz", "--out", "OUT.npz")],
}  # fmt: skip
NO_FOLDERS = {"paper config"}  # its RUN is the name of a stored result


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    """The same run, trained by three ranks and by one process, and as a single file."""
    home = tmp_path_factory.mktemp("runs")
    on_ranks(trained, 3, home / "several")
    train(tree(), out=home / "one", progress=Silent(), slices=3, **SETTINGS)
    train(tree(), out=home / "file", progress=Silent(), **SETTINGS)
    found = {name: home / name for name in ("several", "one", "file")}
    counts = {name: len(list(checkpoint.shards_of(run / folder.BEST).glob("*"))) for name, run in found.items()}
    assert counts == {"several": 3, "one": 1, "file": 0}
    return found


def trained(out: Path) -> None:
    train(tree(), out=out, progress=Silent(), **SETTINGS)


@pytest.fixture(scope="module")
def hierarchy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("hierarchy") / "run"
    murp.embed(tree(3), relation="parent", out=out, dim=3, epochs=2, progress=Silent())
    shard_run(out, 2)
    return out


def named() -> Iterator[str]:
    """The commands that have an argument with the name RUN that is no folder to make."""

    def below(one: argparse.ArgumentParser, name: str) -> Iterator[str]:
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command, further in action.choices.items():
                    yield from below(further, f"{name} {command}".strip())
            elif action.metavar == "RUN" and action.dest != "out":
                yield name

    return below(parser(), "")


def test_every_command_that_opens_a_run_is_asked() -> None:
    assert set(named()) - NO_FOLDERS == set(WAYS)


@pytest.mark.parametrize("kind", ["several", "one", "file"])
@pytest.mark.parametrize("words", [(name, *way) for name, ways in WAYS.items() for way in ways], ids=" ".join)
def test_every_command_opens_every_run(
    words: tuple[str, ...],
    kind: str,
    runs: Mapping[str, Path],
    hierarchy: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also mapped, where it counts as large."""
    if {"index", "--approximate"} & set(words):
        pytest.importorskip("faiss")
    monkeypatch.setattr(approximate, "QUESTIONS", 30)
    monkeypatch.setattr(approximate, "MOST_LOOKED_INTO", 1.0)
    monkeypatch.setattr("murp.serving.server.serve", lambda current, server, bound: bound.close())
    (tmp_path / "facts.tsv").write_text("new\tparent\tn3\nnew\tnext\tn40\nn41\tnext\tnew\n")
    tree().save(tmp_path / "graph")
    for large in (checkpoint.LARGE, 1):
        monkeypatch.setattr(checkpoint, "LARGE", large)
        run = Path(shutil.copytree(runs[kind], tmp_path / f"run{large}"))
        if "--approximate" in words:
            assert main(["index", str(run), "--cells", "3"]) == 0
        places = {"RUN": run, "HIERARCHY": hierarchy, "FACTS": tmp_path / "facts.tsv", "GRAPH": tmp_path / "graph"}
        given = [str(places.get(word, word)).replace("OUT", str(tmp_path / f"out{large}")) for word in words]
        assert main(given) == 0


@pytest.mark.parametrize("kind", ["several", "one"])
def test_an_index_answers_as_the_exact_search(
    kind: str, runs: Mapping[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With one cell everything is looked into."""
    pytest.importorskip("faiss")
    run = str(shutil.copytree(runs[kind], tmp_path / "run"))
    assert main(["index", run, "--cells", "1", "--device", "cpu"]) == 0
    capsys.readouterr()
    for words in (["predict", run, *QUESTION, "--json"], ["nearest", run, "n3", "--json"]):
        found = []
        for further in ([], ["--approximate"]):
            assert main([*words, "--device", "cpu", *further]) == 0
            answers = next(value for value in json.loads(capsys.readouterr().out).values() if isinstance(value, list))
            found.append([answer["id"] for answer in answers])
        assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["several", "one"])
def test_an_index_of_other_weights_is_refused(kind: str, runs: Mapping[str, Path], tmp_path: Path) -> None:
    """Weights of one rank's rows that change are enough, also in the same epoch."""
    pytest.importorskip("faiss")
    run = Path(shutil.copytree(runs[kind], tmp_path / "run"))
    files = len(list(checkpoint.shards_of(run / folder.BEST).iterdir()))
    murp.load(run, device="cpu").index(cells=1)
    assert murp.load(run, device="cpu").nearest("n3", approximate=True)
    for name in (folder.BEST, folder.LAST):
        tables, state = checkpoint.read(checkpoint.shards_of(run / name))
        tables["object_bias"][-1] += 1.0
        shutil.rmtree(checkpoint.shards_of(run / name))
        checkpoint.write(run / name, tables, state)
    shard_run(run, files)
    with pytest.raises(murp.MurpError, match="was made from other weights"):
        murp.load(run, device="cpu").nearest("n3", approximate=True)
