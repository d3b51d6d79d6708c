"""Reading a run while it is trained: every load gives one whole checkpoint, without a warning."""

from __future__ import annotations

import errno
import json
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import murp
from murp.config import Config
from murp.distributed import saving
from murp.errors import RunError
from murp.graph import KnowledgeGraph
from murp.prediction import Calibration
from murp.runs import checkpoint, folder, shards, tensor_file
from murp.runs.checkpoint import previous
from murp.runs.tensor_file import MissingError

QUICK: dict[str, Any] = {
    "dim": 3, "epochs": 2, "lr": 1.0, "batch_size": 16, "negatives": 2, "device": "cpu", "engine": "torch",
    "validate_every": 1, "save_every": 0,
}  # fmt: skip


def tables(epoch: int) -> dict[str, torch.Tensor]:
    return {"entity": torch.full((50, 4), float(epoch)), "bias": torch.full((50,), float(epoch))}


def state(epoch: int) -> dict[str, Any]:
    """With files of very different lengths one after another."""
    return {"epoch": epoch, "filler": "x" * (epoch * 7919 % 5000)}


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """A checkpoint of epoch 2, after one of epoch 1."""
    path = tmp_path / "last.safetensors"
    for epoch in (1, 2):
        checkpoint.write(path, tables(epoch), state(epoch))
    return path


def loaded_epoch(path: Path) -> int:
    """The epoch of what a load gives, which must be of one piece; a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, of = checkpoint.load(path)
    epoch: int = of["epoch"]
    assert of == state(epoch)
    assert all(values.equal(tables(epoch)[name]) for name, values in found.items())
    assert set(found) == set(tables(epoch))
    return epoch


def test_hundreds_of_loads_beside_a_writer_that_never_rests(last: Path) -> None:
    done = threading.Event()

    def save() -> None:
        epoch = 3
        while not done.is_set():
            checkpoint.write(last, tables(epoch), state(epoch))
            epoch += 1

    writer = threading.Thread(target=save)
    writer.start()
    epochs: list[int] = []
    try:
        while len(epochs) < 500 or len(set(epochs)) < 20:  # the disk may be slow
            epochs.append(loaded_epoch(last))
            assert writer.is_alive()
    finally:
        done.set()
        writer.join()
    assert epochs == sorted(epochs)


def after_the_rename_to(target: Path, act: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``act`` called once, when a file has been renamed to ``target``."""
    real, todo = Path.replace, [act]

    def replace(self: Path, to: Path) -> Path:
        moved = real(self, to)
        if Path(to) == target and todo:
            todo.pop()()
        return moved

    monkeypatch.setattr(Path, "replace", replace)


def test_between_the_two_renames_the_one_before_is_read_and_nothing_is_called_damaged(
    last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[Any] = []

    def look() -> None:
        met.append((last.exists(), checkpoint.exists(last), loaded_epoch(last)))

    after_the_rename_to(previous(last), look, monkeypatch)
    checkpoint.write(last, tables(3), state(3))
    assert met == [(False, True, 2)]
    assert loaded_epoch(last) == 3


def test_a_save_that_ends_while_the_reader_looks_for_the_file(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader found nothing between the renames; when it looks around, all is in its place again."""
    hidden = last.rename(last.with_name("hidden"))
    real = tensor_file.read

    def read(path: Path) -> Any:
        try:
            return real(path)
        except MissingError:
            hidden.rename(last)
            raise

    monkeypatch.setattr(tensor_file, "read", read)
    assert loaded_epoch(last) == 2


def test_a_file_that_is_replaced_while_it_is_read(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened is read to its end, twice replaced or not."""
    real, todo = tensor_file._contents, [3, 4]

    def contents(file: Any) -> Any:
        found = real(file)
        while todo and Path(file.name) == last:
            epoch = todo.pop(0)
            tensor_file.write(last.with_name("new"), tables(epoch), state(epoch))
            last.with_name("new").replace(last)
        return found

    monkeypatch.setattr(tensor_file, "_contents", contents)
    assert loaded_epoch(last) == 2
    assert loaded_epoch(last) == 4


def shards_of(epoch: int, folder: Path) -> Path:
    """The checkpoint of two ranks: each has half of the rows."""
    folder.mkdir()
    whole = tables(epoch)
    for rank in (0, 1):
        mine = {name: values[25 * rank : 25 * rank + 25] for name, values in whole.items()}
        writer = shards.Writer(folder, state(epoch), rank, 2)
        writer.write(mine, dict.fromkeys(mine, 25 * rank), dict.fromkeys(mine, 50))
    return folder


@pytest.mark.parametrize(
    ("moment", "calls", "expected"),
    [("__init__", 1, 4), ("__init__", 2, 2), ("verify", 1, 2), ("verify", 2, 2), ("rows", 1, 2), ("rows", 3, 2)],
)
def test_shards_that_are_replaced_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, calls: int, expected: int
) -> None:
    """Two saves after a file was opened, checked or read: the second removes what was opened."""
    path = tmp_path / "last.safetensors"
    home = shards_of(2, tmp_path / "last.shards")
    new = [shards_of(epoch, tmp_path / f"new{epoch}") for epoch in (3, 4)]
    real, made = getattr(tensor_file.File, moment), [0]

    def then_saved(self: Any, *given: Any) -> Any:
        found = real(self, *given)
        made[0] += 1
        if made[0] == calls:
            for part in new:
                saving._put(part, home)
        return found

    monkeypatch.setattr(tensor_file.File, moment, then_saved)
    assert loaded_epoch(path) == expected
    assert made[0] >= calls
    assert loaded_epoch(path) == 4
    assert checkpoint.about(path) == ({"entity": [50, 4], "bias": [50]}, state(4), 2)


def test_too_many_open_files_are_no_damage(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint that is called damaged is replaced by the one before."""

    def refused(*given: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tensor_file, "_contents", refused)
    with pytest.raises(RunError, match=r"too many files open. Raise its limit \(`ulimit -n`\)"):
        checkpoint.recover(last)
    monkeypatch.undo()
    assert loaded_epoch(last) == 2


def test_a_checkpoint_that_is_gone_is_still_warned_of(last: Path) -> None:
    last.unlink()
    with pytest.warns(UserWarning, match=r"no checkpoint at .*last\.previous\.safetensors, of epoch 1"):
        assert checkpoint.load(last)[1]["epoch"] == 1
    previous(last).unlink()
    with pytest.raises(RunError, match="no checkpoint at"):
        checkpoint.load(last)


def test_a_server_that_forgot_the_replaced_file_is_asked_again(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network file system may lose a file that is open when another machine replaces it (ESTALE)."""
    real, todo = tensor_file._contents, [errno.ESTALE]

    def contents(file: Any) -> Any:
        if todo:
            raise OSError(todo.pop(), "Stale file handle")
        return real(file)

    monkeypatch.setattr(tensor_file, "_contents", contents)
    assert loaded_epoch(last) == 2


def test_the_whole_run_is_read_beside_its_training(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Weights, settings, figures, calibration and the best checkpoint, while all of them are written again."""
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    run.calibrate()
    found, of = checkpoint.read(run.path / folder.BEST)
    figures = json.loads((run.path / folder.METRICS).read_text().splitlines()[-1])
    done, faults = threading.Event(), []

    def train() -> None:
        epoch = 2
        try:
            while not done.is_set():
                epoch += 1
                folder.append_metrics(run.path, [{**figures, "epoch": epoch, "filler": "y" * (epoch * 7919 % 20000)}])
                for name in (folder.BEST, folder.LAST):
                    checkpoint.save(run.path / name, found, {**of, "epoch": epoch})
                folder.write_config(run.path, run.config.replace(epochs=epoch))
                assert run.calibration is not None
                (tmp_path / "calibration").write_text(run.calibration.to_json())
                (tmp_path / "calibration").replace(run.path / folder.CALIBRATION)
                if epoch % 20 == 0:
                    folder.rewind_metrics(run.path, epoch)
        except BaseException as error:
            faults.append(error)

    writer = threading.Thread(target=train)
    writer.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for number in range(60):
                assert writer.is_alive(), faults
                opened = murp.load(run.path, checkpoint=None if number % 2 else "last", graph=run.graph)
                assert opened.config.epochs >= 2
                assert [record["epoch"] for record in opened.metrics()][:2] == [1, 2]
                assert isinstance(Calibration.read(run.path / folder.CALIBRATION), Calibration)
                assert isinstance(folder.read_config(run.path), Config)
    finally:
        done.set()
        writer.join()
    assert not faults
