"""``torchrun … -m murp``: the first rank speaks for all; what works in one process alone is refused."""

from __future__ import annotations

import contextlib
import json
import os
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from run_on_ranks import on_ranks

import murp
from murp.cli.main import SPEAKING, main
from murp.distributed import join
from murp.errors import MurpError
from murp.graph import KnowledgeGraph

PATIENCE = 20.0  # seconds that a rank waits until another one reads


def said(words: list[str], place: Path) -> int:
    """Run a command; what it says goes into files, one for each rank."""
    rank = os.environ["RANK"]
    out, err = ((place / f"{name}{rank}").open("w") for name in ("out", "err"))
    with out, err, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        return main(words)


def test_train_and_evaluate_speak_once(small_tree: KnowledgeGraph, tmp_path: Path, capsys: Any) -> None:
    small_tree.save(tmp_path / "graph")
    run = str(tmp_path / "run")
    words = ["train", "--data", str(tmp_path / "graph"), "--out", run, "--epochs", "2", "--validate-every", "1"]
    words += ["--dim", "6", "--device", "cpu", "--lr", "1", "--json"]
    assert on_ranks(said, 2, words, tmp_path) == [0, 0]
    lines = (tmp_path / "out0").read_text().splitlines()
    assert [json.loads(line).get("epoch") for line in lines] == [1, 2, None]
    assert (tmp_path / "out1").read_text() == ""
    asked = ["evaluate", run, "--json", "--split", "valid", "--device", "cpu"]
    assert on_ranks(said, 2, asked, tmp_path) == [0, 0]
    found = json.loads((tmp_path / "out0").read_text())
    assert found["mrr"] == pytest.approx(murp.evaluate(run, "valid", device="cpu").mrr, rel=1e-6)
    assert (tmp_path / "out1").read_text() == ""
    assert on_ranks(said, 2, [*asked, "--candidates", "5"], tmp_path) == [1, 1]
    assert "candidates belong to protocol sampled" in (tmp_path / "err0").read_text()
    assert (tmp_path / "err1").read_text() == ""
    drawn = [*asked, "--protocol", "sampled", "--candidates", "20", "--seed", "4"]
    assert on_ranks(said, 2, drawn, tmp_path) == [0, 0]
    assert main(drawn) == 0
    assert (tmp_path / "out0").read_text() == capsys.readouterr().out
    assert (tmp_path / "out1").read_text() == ""
    stored, alone = tmp_path / "ranks.parquet", tmp_path / "alone.parquet"
    assert on_ranks(said, 2, [*drawn, "--save-candidates", str(stored)], tmp_path) == [0, 0]
    assert main([*drawn, "--save-candidates", str(alone)]) == 0
    expected = capsys.readouterr().out
    assert pq.read_table(stored).equals(pq.read_table(alone))
    read = [*drawn[:-4], "--candidates-from", str(stored)]
    assert on_ranks(said, 2, read, tmp_path) == [0, 0]
    assert (tmp_path / "out0").read_text() == expected
    assert on_ranks(said, 2, [*drawn, "--save-candidates", str(stored)], tmp_path) == [1, 1]
    assert "exists already" in (tmp_path / "err0").read_text()
    damaged = pq.read_table(stored).slice(1)
    pq.write_table(damaged, stored)
    assert on_ranks(said, 2, read, tmp_path) == [1, 1]
    assert "1 of 18 questions of the split are missing" in "".join(
        (tmp_path / f"err{rank}").read_text() for rank in (0, 1)
    )


def said_apart(words: list[list[str]], place: Path) -> int:
    """As if each rank was on a machine of its own, which has its own command."""
    return said(words[int(os.environ["RANK"])], place)


ASKED = ["predict", "RUN", "--relation", "next"]


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (["train", "--out", "new"], ["evaluate", "RUN"], "rank 0 with `murp train`, rank 1 with `murp evaluate`"),
        (["train", "--resume", "RUN"], ["train", "--out", "new"], "`murp train --resume`, rank 1 with `murp train`"),
        (["evaluate", "RUN"], [*ASKED, "--head", "n4"], "rank 0 with `murp evaluate`, rank 1 with `murp predict`"),
        ([*ASKED, "--head", "n4"], ["discover", "RUN"], "rank 0 with `murp predict`, rank 1 with `murp discover`"),
        ([*ASKED, "--head", "n4"], [*ASKED, "--head", "n5"], "differ in --head: rank 0 has n4, rank 1 has n5"),
        ([*ASKED, "--head", "n4"], [*ASKED, "--head", "n4", "-k", "5"], "differ in -k: rank 0 has 10, rank 1 has 5"),
        (["discover", "RUN", "-k", "3"], ["discover", "RUN"], "differ in -k: rank 0 has 3, rank 1 has 100"),
        (["evaluate", "RUN"], ["evaluate", "RUN", "--seed", "5"], "differ in --seed: rank 0 has 0, rank 1 has 5"),
    ],
)
def test_ranks_with_different_commands_are_told_so_at_once(
    small_tree: KnowledgeGraph, tmp_path: Path, first: list[str], second: list[str], message: str
) -> None:
    """Otherwise they wait for each other without end, or some of what was asked is ignored."""
    run = murp.train(small_tree, out=tmp_path / "run", slices=2, dim=6, epochs=1, device="cpu", validate_every=0)
    new = str(tmp_path / "new")
    words = [[{"RUN": str(run.path), "new": new}.get(word, word) for word in given] for given in (first, second)]
    assert on_ranks(said_apart, 2, words, tmp_path) == [1, 1]
    said = (tmp_path / "err0").read_text()
    assert message in said
    assert said.count("\n") == 1
    assert "Start torchrun with the same command on every machine." in said
    assert (tmp_path / "err1").read_text() == ""
    assert (tmp_path / "out0").read_text() == (tmp_path / "out1").read_text() == ""
    assert not (tmp_path / "new").exists()


def test_the_run_folder_may_have_another_path_on_another_machine(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", slices=2, dim=6, epochs=1, device="cpu", validate_every=0)
    (tmp_path / "there").symlink_to(run.path)
    words = [["evaluate", path, "--device", "cpu"] for path in (str(run.path), str(tmp_path / "there"))]
    assert on_ranks(said_apart, 2, words, tmp_path) == [0, 0]


def test_answers_of_ranks_are_those_of_one_process(small_tree: KnowledgeGraph, tmp_path: Path, capsys: Any) -> None:
    """Only the first rank prints and writes. DistMult has no fused kernel, so the arithmetic is the same."""
    run = str(tmp_path / "run")
    small_tree.save(tmp_path / "graph")
    trained = ["train", "--data", str(tmp_path / "graph"), "--out", run, "--model", "distmult", "--dim", "6"]
    trained += ["--objective", "softmax", "--epochs", "2", "--device", "cpu"]
    assert on_ranks(said, 2, trained, tmp_path) == [0, 0]
    (tmp_path / "asked.tsv").write_text("".join(f"n{i}\tparent\t?\n?\tnext\tn{i}\n" for i in range(40)))
    common = [run, "--device", "cpu"]
    for words in (
        ["predict", *common, "--head", "n40", "--relation", "next"],
        ["predict", *common, "--tail", "n3", "--relation", "parent", "-k", "50", "--new-only", "--json"],
        ["discover", *common, "-k", "20"],
        ["discover", *common, "-k", "20", "--heads", "all", "--relation", "next", "--json"],
    ):
        assert on_ranks(said, 3, words, tmp_path) == [0, 0, 0]
        assert main(words) == 0
        assert (tmp_path / "out0").read_text() == capsys.readouterr().out
        assert [(tmp_path / f"{name}{rank}").read_text() for name in ("out", "err") for rank in (1, 2)] == [""] * 4
    for words in (["predict", *common, "--queries", str(tmp_path / "asked.tsv"), "-k", "5"], ["discover", *common]):
        many, one = tmp_path / f"many-{words[0]}.csv", tmp_path / f"one-{words[0]}.csv"
        assert on_ranks(said, 2, [*words, "--out", str(many)], tmp_path) == [0, 0]
        assert main([*words, "--out", str(one)]) == 0
        assert many.read_bytes() == one.read_bytes()
    # The first rank says what is wrong; the others have nothing more to do.
    wrong = ["predict", *common, "--head", "nobody", "--relation", "next"]
    assert on_ranks(said, 2, wrong, tmp_path) == [1, 0]
    assert (tmp_path / "err0").read_text() == "murp: unknown entity 'nobody'.\n"
    assert (tmp_path / "err1").read_text() == ""
    for words, message in (
        (["discover", *common, "--types"], "--types works only in one process"),
        (
            ["predict", *common, "--head", "n4", "--relation", "next", "--approximate"],
            "--approximate works only in one",
        ),
        (["predict", *common, "--head", "n4"], "--head needs --relation"),
        (["discover", *common, "--out", str(tmp_path / "one-discover.csv")], "exists already"),
    ):
        assert on_ranks(said, 2, words, tmp_path) == [1, 1]
        assert message in (tmp_path / "err0").read_text()
        assert (tmp_path / "err1").read_text() == ""


def stopped(words: list[str], place: Path) -> tuple[int, int]:
    """Ctrl-C on every rank in the middle of an evaluation: the status of the command, and that of its process."""
    from murp.distributed import ranks
    from murp.training import sharded

    def interrupt(*given: Any) -> None:
        raise KeyboardInterrupt

    sharded.evaluated = interrupt  # type: ignore[assignment]
    return said(words, place), ranks._status


def test_an_interrupt_is_told_once_and_waits_for_nobody(tmp_path: Path) -> None:
    assert on_ranks(stopped, 2, ["evaluate", str(tmp_path), "--device", "cpu"], tmp_path) == [(130, 130), (130, 130)]
    assert sorted((tmp_path / f"err{rank}").read_text() for rank in (0, 1)) == ["", "murp: interrupted\n"]


def test_a_protocol_that_ranks_cannot_count_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    """It would be ranks of protocol standard under another name."""
    two = SimpleNamespace(size=2, started=lambda *given: None, together=contextlib.nullcontext)
    monkeypatch.setattr("murp.distributed.ranks.join", lambda: two)
    assert main(["evaluate", str(tmp_path), "--protocol", "types"]) == 1
    assert "protocol types works only in one process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["info", "runs/any"], "torchrun is for train, evaluate, predict, discover. Start other commands without it"),
        (["train", "--dim", "4"], "with torchrun give --out"),
        (["train", "--dim", "4", "--explore", "--out", "x"], "with torchrun no process has them"),
    ],
)
def test_what_needs_one_process_is_refused(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "RANK": "0", "LOCAL_WORLD_SIZE": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("WORLD_SIZE", "2" if words[0] == "info" else "1")
    assert main(words) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def ended(words: list[str], place: Path) -> None:
    """Run a command that fails before ranks meet; torchrun then stops the others."""
    try:
        status: Any = said(words, place)
    except SystemExit as stop:
        status = stop.code
    raise MurpError(f"status {status}")


EARLY = [
    (["train", "--out", "x", "--lrr", "3"], 2, "unrecognized arguments: --lrr 3"),
    (["train", "--out", "x", "--lr", "abc"], 2, "argument --lr: "),
    (["train", "--model", "murpp"], 2, "murpp"),
    (["discover", "x", "--approximate"], 2, "unrecognized arguments: --approximate"),
    (["train", "--out", "x", "--explore"], 1, "with torchrun no process has them"),
    (["train", "--out", "x", "--config", "/nope.toml"], 1, "/nope.toml"),
    (["train", "--resume", "x", "--slices", "8"], 1, "leave out --slices"),
    (["info", "x"], 1, "torchrun is for train, evaluate, predict, discover"),
]


@pytest.mark.parametrize(("words", "status", "message"), EARLY)
def test_an_error_before_ranks_meet_is_told_by_one(words: list[str], status: int, message: str, tmp_path: Path) -> None:
    found = on_ranks(ended, 3, words, tmp_path)
    assert (str(found[0]), found[1:]) == (f"status {status}", [None, None])
    assert (tmp_path / "err0").read_text().count(message) == 1
    assert [(tmp_path / f"err{rank}").read_text() for rank in (1, 2)] == ["", ""]


@pytest.mark.parametrize(("words", "status", "message"), EARLY)
def test_an_error_that_the_first_rank_does_not_have_is_told_by_another(
    words: list[str], status: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """After a while in which nobody has stopped it."""
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)
    try:
        found: Any = main(words)
    except SystemExit as stop:
        found = stop.code
    assert (found, waited) == (status, [SPEAKING])
    assert capsys.readouterr().err.count(message) == 1


@pytest.mark.parametrize(("local", "told"), [("0", "murp: interrupted\n"), ("1", "")])
def test_an_interrupt_before_ranks_meet_is_told_by_one(
    local: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("murp.cli.main._check_working_folder", interrupt)
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": local}.items():
        monkeypatch.setenv(name, value)
    assert main(["evaluate", "x"]) == 130
    assert capsys.readouterr().err == told


def reading(path: Path, place: Path, kept: bool) -> tuple[int, int]:
    """Train on a file that is read in pieces; how often this rank has coded it, and the facts it found.

    If the result is ``kept`` in the cache, reading is slow; if not, a rank has read when both have begun to read.
    """
    from torch.distributed import distributed_c10d

    from murp.graph import cache, large
    from murp.graph.large import coding
    from murp.training import sharded, start

    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    os.environ["MURP_CACHE"] = "on" if kept else "off"
    large.LARGE = cache.LEAST_BYTES = 0
    # Ranks usually wait for each other for half an hour; here they wait for less than reading takes.
    distributed_c10d._get_default_timeout = lambda backend: timedelta(seconds=4)
    code, calls = coding.code, []

    def slowly(*of: Any) -> Any:
        calls.append(of)
        if kept:
            time.sleep(6)
        else:
            (place / f"begun{join().rank}").touch()
            ends = time.monotonic() + PATIENCE
            while len(list(place.glob("begun*"))) < 2:
                assert time.monotonic() < ends, "the other rank does not read"
                time.sleep(0.01)
        return code(*of)

    coding.code = slowly
    sharded.begin = lambda path, config, graph, *rest: len(graph.train)
    found: Any = start.train(path, out=place / "run", device="cpu")
    return len(calls), found


@pytest.mark.parametrize(("kept", "calls"), [(True, [1, 0]), (False, [1, 1])])
def test_one_rank_of_a_machine_reads_a_large_file_and_the_others_wait_or_all_read_at_once(
    tmp_path: Path, kept: bool, calls: list[int]
) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("".join(f"a{i % 20}\tr{i % 3}\ta{i * 7 % 20}\n" for i in range(200)))
    found = on_ranks(reading, 2, path, tmp_path, kept)
    assert [count for count, _ in found] == calls
    assert found[0][1] == found[1][1] > 50
