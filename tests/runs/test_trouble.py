"""What the world does to a training: full disks, folders that are read-only or vanish, a second training, a kill.

Trainings of the command line in processes of their own, on real file systems.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import murp
from examples import PATIENCE
from forked import Forked
from murp import files
from murp.cli.main import main
from murp.errors import ConfigError, RunError
from murp.files import new_folder
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint
from murp.runs.lock import locked
from murp.training.progress import Silent

QUICK: dict[str, Any] = {
    "dim": 3, "epochs": 2, "lr": 1.0, "batch_size": 16, "negatives": 2, "device": "cpu", "engine": "torch",
    "validate_every": 1, "save_every": 0,
}  # fmt: skip


def refused(*arguments: str | Path) -> str:
    """What a command that fails tells on standard error; in this process, which is another than the trainings'."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        status = main(list(map(str, arguments)))
    return message(status, told.getvalue())


def message(status: int | None, told: str) -> str:
    assert status == 1, told
    assert "Traceback" not in told
    return told


@contextlib.contextmanager
def training(graph: KnowledgeGraph, out: Path) -> Iterator[Forked]:
    """A training that would go on for hours, in its first epochs."""
    run = murp.train(graph, out=out, **{**QUICK, "validate_every": 0})
    config = run.path / "config.toml"
    config.write_text(config.read_text().replace("\nepochs = 2\n", f"\nepochs = {10**6}\n"))
    before = (run.path / "last.safetensors").stat().st_ino
    process = Forked("train", "--resume", run.path)
    try:
        wait_for(lambda: (run.path / "last.safetensors").stat().st_ino != before, process)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(condition: Any, process: Forked) -> None:
    deadline = time.monotonic() + 60
    while True:
        with contextlib.suppress(FileNotFoundError):
            if condition():
                return
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextlib.contextmanager
def file_system(place: Path, options: str) -> Iterator[None]:
    """A file system in memory, mounted at ``place``; skips where that is not allowed."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, text=True, check=False
    ) if shutil.which("mount") else None  # fmt: skip
    if made is None or made.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs here: {made.stderr.strip() if made else 'no mount'}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_two_trainings_into_one_folder(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """The second is refused, with the first one's number; a killed one holds nothing."""
    run = tmp_path / "run"
    with training(small_tree, run) as process:
        told = refused("train", "--resume", run)
        assert f"is being trained by process {process.pid} already" in told
        assert f"kill -INT {process.pid}" in told
        with pytest.raises(RunError, match="is being trained"):
            murp.resume(run)
        assert murp.load(run).state["epoch"] >= 2  # reading is nobody's harm
        process.send_signal(signal.SIGKILL)
        process.wait()
        with locked(run):
            pass


def test_two_trainings_that_make_one_folder(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """One of them gets it; what the other had begun is gone."""

    def slower() -> None:
        with new_folder(tmp_path / "run", RunError) as part:
            (part / "config.toml").touch()
            murp.train(small_tree, out=tmp_path / "run", **QUICK)

    with pytest.raises(RunError, match="exists already: another process has made it"):
        slower()
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    assert murp.load(tmp_path / "run", checkpoint="last").state["epoch"] == 2


def test_what_a_killed_training_left_is_removed_by_the_next(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Half-written files in the run folder, and a half-made folder beside it; not what a living process makes."""
    beside = tmp_path / ".run.abc123.part"
    beside.mkdir()
    with new_folder(tmp_path / "other", RunError) as living:
        murp.train(small_tree, out=tmp_path / "run", **QUICK)
        assert living.exists()
        murp.train(small_tree, out=tmp_path / "other", **QUICK)
        assert living.exists()
        shutil.rmtree(tmp_path / "other")
    assert not beside.exists()
    for name in (".last.safetensors.x1.part", ".best.safetensors.x2.part", ".metrics.jsonl.x3.part"):
        (tmp_path / "run" / name).write_bytes(b"half")
    murp.resume(tmp_path / "run", epochs=3)
    assert [p.name for p in (tmp_path / "run").iterdir() if p.name.endswith(".part")] == []


def test_a_folder_that_vanishes_while_it_is_trained(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(small_tree, run) as process:
        run.rename(tmp_path / "gone")  # at once, where removing takes a while
        shutil.rmtree(tmp_path / "gone")
        _, told = process.communicate(timeout=PATIENCE)
    assert f"the run folder {run} is gone" in message(process.returncode, told)
    assert "start again" in told
    assert not run.exists()


def test_a_folder_that_is_removed_file_by_file(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with training(small_tree, run) as process:
        while run.exists():
            shutil.rmtree(run, ignore_errors=True)
        _, told = process.communicate(timeout=PATIENCE)
    assert str(run) in message(process.returncode, told)


def test_a_full_disk(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """A file system with room for a run, then filled to the last byte; with room again the run goes on."""
    run, calm = tmp_path / "disk" / "run", tmp_path / "calm"
    with file_system(tmp_path / "disk", "size=1m"):
        murp.train(small_tree, out=run, **QUICK)
        before = (run / "last.safetensors").read_bytes()
        filler = tmp_path / "disk" / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        told = refused("train", "--resume", run, "--epochs", "4")
        assert "No space left on device" in told
        assert f"murp train --resume {run}" in told
        assert (run / "last.safetensors").read_bytes() == before
        assert [p.name for p in run.iterdir() if p.name.endswith(".part")] == []
        filler.unlink()
        murp.resume(run, epochs=4)
        murp.train(small_tree, out=calm, **{**QUICK, "epochs": 4})
        ours, theirs = (checkpoint.read(path / "last.safetensors")[0] for path in (run, calm))
        assert all(ours[name].equal(theirs[name]) for name in theirs)


def test_a_read_only_folder(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Can be read, evaluated and asked, and says so when it should be trained."""
    disk = tmp_path / "disk"
    with file_system(disk, "size=1m"):
        murp.train(small_tree, out=disk / "run", **QUICK)
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert murp.load(disk / "run").evaluate("test").mrr > 0
        told = refused("train", "--resume", disk / "run", "--epochs", "4")
        assert "could not write" in told
        assert "Read-only file system" in told
        with pytest.raises(RunError, match="cannot be made: Read-only file system"):
            murp.train(small_tree, out=disk / "other", **QUICK)


def test_a_disk_that_becomes_read_only_while_training(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """As systems do with a disk that fails: nothing can be opened for writing any more."""
    disk = tmp_path / "disk"
    with file_system(disk, "size=4m"), training(small_tree, disk / "run") as process:
        # Over the other, since a file system in use cannot be changed itself.
        subprocess.run(["mount", "--bind", str(disk), str(disk)], check=True)
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(disk)], check=True)
            _, told = process.communicate(timeout=PATIENCE)
            assert "Read-only file system" in message(process.returncode, told)
            assert f"murp train --resume {disk / 'run'}" in told
            assert murp.load(disk / "run", checkpoint="last").state["epoch"] >= 2
        finally:
            subprocess.run(["umount", "-l", str(disk)], check=True)


def test_the_command_line_warns_of_a_damaged_checkpoint(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK).path
    last = run / "last.safetensors"
    last.write_bytes(last.read_bytes()[:-1])
    command = [sys.executable, "-m", "murp", "info", str(run)]  # not forked: pytest keeps warnings from being printed
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0
    assert result.stderr.startswith(f"murp: warning: {last} is damaged: ")
    assert result.stderr.endswith("Using the checkpoint before it, last.previous.safetensors, of epoch 1.\n")
    assert "epoch 1 of 2" in result.stdout


@pytest.fixture
def run(small_tree: KnowledgeGraph, tmp_path: Path) -> Path:
    return murp.train(small_tree, out=tmp_path / "run", **QUICK).path


@pytest.mark.parametrize("then", ["removed", "replaced"])
def test_without_its_lock_file_a_second_training_is_refused_all_the_same(run: Path, then: str) -> None:
    """The folder itself is locked: it cannot be removed without an end of the training."""
    with locked(run):
        (run / "lock").unlink()
        if then == "replaced":
            (run / "lock").write_text("")
        for _ in range(2):
            with pytest.raises(RunError, match="is being trained by another process already"), locked(run):
                pass
    with locked(run):
        assert (run / "lock").read_text() == f"{os.getpid()}\n"


def refuse_locks(monkeypatch: pytest.MonkeyPatch, error: int, *, folders_only: bool = False) -> None:
    real = fcntl.flock

    def flock(handle: int, operation: int) -> None:
        if not folders_only or stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(error, os.strerror(error))
        real(handle, operation)

    monkeypatch.setattr(fcntl, "flock", flock)


def test_a_file_system_without_locks_is_warned_of(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(monkeypatch, errno.ENOLCK)
    with pytest.warns(UserWarning, match="cannot be locked.*nothing stops a second training"), locked(run):
        pass


def test_a_file_system_that_locks_files_only_needs_no_warning(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As network file systems do."""
    refuse_locks(monkeypatch, errno.EBADF, folders_only=True)
    with warnings.catch_warnings(), locked(run):
        warnings.simplefilter("error")
        with pytest.raises(RunError, match=f"trained by process {os.getpid()} already"), locked(run):
            pass


def test_a_python_without_locks_is_warned_of(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "fcntl", None)
    with pytest.warns(UserWarning, match="cannot be locked.*nothing stops a second training"):
        assert len(murp.resume(run, epochs=3).metrics()) == 3


@pytest.mark.parametrize("when", ["an epoch ends", "nothing is left to do"])
def test_a_folder_that_was_moved_away_and_its_place_taken(
    small_tree: KnowledgeGraph, run: Path, tmp_path: Path, when: str
) -> None:
    """Nothing is written into the folder that stands there now, which is another training's."""
    other = murp.train(small_tree, out=tmp_path / "other", **{**QUICK, "seed": 1}).path
    (other / "lock").write_text("1\n")  # as of another process
    before = {path.name: path.read_bytes() for path in other.iterdir() if path.is_file()}

    class Swap(Silent):
        def epoch(self, record: dict[str, Any]) -> None:
            if record["epoch"] == (3 if when == "an epoch ends" else 4):
                run.rename(tmp_path / "moved")
                other.rename(run)

    with pytest.raises(RunError, match=f"the run folder {run} is gone: it was moved"):
        murp.resume(run, epochs=4, progress=Swap())
    assert {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()} == before
    murp.resume(tmp_path / "moved", epochs=4)


def test_a_lost_file_of_metrics_stops_no_one(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK).path
    (run / "metrics.jsonl").unlink()
    assert [record["epoch"] for record in murp.resume(run, epochs=3).metrics()] == [3]


def test_a_fault_in_the_settings_is_told_though_the_environment_is_lost(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK).path
    (run / "environment.json").unlink()
    (run / "config.toml").write_text("dim = -3\n")
    with pytest.raises(ConfigError, match="dim must be"):
        murp.load(run)
