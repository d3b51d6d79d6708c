"""``murp sweep`` as a user types it: what it prints, its exit status, and the same command again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typed import murp, ok, refused

SWEEP = [
    "sweep", "--model", "mure", "--dim", "3", "--epochs", "4", "--batch-size", "16", "--negatives", "5", "--lr", "1",
    "--device", "cpu", "--validate-every", "1",
]  # fmt: skip


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "facts.tsv"
    path.write_text("".join(f"a{i}\tr{j % 2}\ta{(3 * i + j) % 20}\n" for i in range(20) for j in range(4)))
    return path


def test_failed_runs_stand_last_with_their_reasons_below_and_the_status_tells(facts: Path, tmp_path: Path) -> None:
    command = [*SWEEP, "--data", facts, "--out", tmp_path / "grid", "--lr", "1e30", "1"]
    for _ in range(2):  # again: the finished run is kept, and the failed one told once more
        result = murp(*command)
        assert result.returncode == 1
        assert "Traceback" not in result.stderr
        assert result.stderr.splitlines()[-1] == "murp: 1 of 2 runs failed."
        lines = result.stdout.splitlines()
        head, good, bad = (line.split() for line in lines[2:5])
        assert head == ["run", "MRR", "epoch"]
        assert good[0] == "lr1.0"
        assert 0 < float(good[1]) <= 1
        assert bad == ["lr1e+30", "failed", "–"]
        assert all(len(line) < 40 for line in lines[2:5])
        assert lines[5] == ""
        assert lines[6].startswith("lr1e+30: ")
        assert "became NaN or infinite" in lines[6]


def test_a_sweep_is_told_of_its_data_what_a_training_is_told(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("source\trelation\ttarget\n" + "".join(f"a{i}\tr\ta{(3 * i + 1) % 20}\n" for i in range(20)))
    words = [*SWEEP, "--data", path, "--epochs", "1", "--quiet", "--json"]
    for more, entities in ((["--no-header"], 22), ([], 20)):
        out = tmp_path / f"grid{entities}"
        ok(*words, *more, "--out", out)
        assert json.loads(ok("info", next(out.glob("*/config.toml")).parent, "--json"))["graph"]["entities"] == entities


@pytest.mark.parametrize(
    ("option", "values"), [("split-seed", "0 1"), ("columns", "head=1,relation=2,tail=3 head=3,relation=2,tail=1")]
)
def test_a_sweep_over_graphs_is_refused(facts: Path, option: str, values: str, tmp_path: Path) -> None:
    """All runs would be of the first graph, and say that they are of others."""
    told = refused(*SWEEP, "--data", facts, "--out", tmp_path / "grid", f"--{option}", *values.split())
    assert f"a sweep has one graph: give {option.replace('-', '_')} one value" in told
    assert not (tmp_path / "grid").exists()


def test_every_line_names_its_run(facts: Path, tmp_path: Path) -> None:
    words = [*SWEEP, "--data", facts, "--out", tmp_path / "a", "--lr", "1", "2", "--epochs", "2"]
    runs = [str(tmp_path / "a" / name) for name in ("lr1.0", "lr2.0")]
    records = [json.loads(line) for line in ok(*words, "--json").splitlines()]
    assert [record["run"] for record in records if "epoch" in record and "loss" in record] == 2 * runs[:1] + 2 * runs[
        1:
    ]


def test_without_out_the_runs_go_under_runs_and_the_same_command_finds_them_again(facts: Path, tmp_path: Path) -> None:
    command = [*SWEEP, "--data", facts, "--lr", "1", "2", "--epochs", "2"]
    first = ok(*command, cwd=tmp_path)
    home = Path("runs") / "facts-sweep-lr"
    assert first.splitlines()[-1] == f"saved in {home}"
    assert sorted(p.name for p in (tmp_path / home).iterdir() if p.is_dir()) == ["lr1.0", "lr2.0"]
    assert json.loads(ok(*command, "--json", cwd=tmp_path).splitlines()[-1])["out"] == str(home)


def test_json_tells_of_failures_too(facts: Path, tmp_path: Path) -> None:
    result = murp(*SWEEP, "--json", "--data", facts, "--out", tmp_path, "--dim", "3", "100000000000000")
    assert result.returncode == 1
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["best_mrr"]["dim3"] > 0
    assert last["best_mrr"]["dim100000000000000"] is None
    assert "smaller --dim" in last["failed"]["dim100000000000000"]


def test_a_sweep_that_stopped_early_is_repeated_by_the_same_command(facts: Path, tmp_path: Path) -> None:
    command = [*SWEEP, "--data", facts, "--out", tmp_path, "--lr", "5", "10", "--epochs", "200", "--patience", "1"]
    assert ok(*command) == ok(*command)


def test_a_batch_of_too_many_rows_is_refused_at_once(facts: Path, tmp_path: Path) -> None:
    command = [*SWEEP, "--data", facts, "--out", tmp_path]
    message = refused(*command, "--batch-size", "100", "--negatives", "5", "1000000000")
    assert "--batch-size or --negatives" in message
    assert "1 if any of them failed" in " ".join(ok("sweep", "--help").split())
    assert list(tmp_path.iterdir()) == []
