"""Checkpoints of ranks are written while training goes on: in order, with the values of their moment."""

from __future__ import annotations

import errno
import threading
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from murp.distributed.engine import ShardedEngine
from murp.distributed.saving import Saver
from murp.errors import RunError
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder, tensor_file
from murp.training import loop, train
from murp.training.job import Job
from murp.training.progress import Silent

SETTINGS: dict[str, Any] = {
    "dim": 6, "batch_size": 60, "negatives": 3, "device": "cpu", "validate_every": 0, "save_every": 0.0, "lr": 0.02,
    "optimizer": "adam", "engine": "torch", "epochs": 3, "slices": 2,
}  # fmt: skip
PATIENCE = 10.0  # seconds that a write waits for the next step, where there is none


def test_steps_go_on_while_a_checkpoint_is_written(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write waits until a step has been made since it was asked for; the first makes the run, the last ends it."""
    made, asked = [0], [0]
    given: list[str] = []
    written: list[str] = []
    changed = threading.Condition()
    step, save, write = ShardedEngine.step, loop._save, tensor_file.write

    def counted(self: ShardedEngine, *rest: Any) -> Any:
        found = step(self, *rest)
        with changed:
            made[0] += 1
            changed.notify()
        return found

    def noted(job: Job, *rest: Any) -> None:
        given.append(tensor_file.checksum(job.model.parameters | job.optimizer))
        asked.append(made[0])
        save(job, *rest)

    def patient(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
        if 0 < state["epoch"] < SETTINGS["epochs"]:
            with changed:
                assert changed.wait_for(lambda: made[0] > asked[len(written)], PATIENCE), "training did not go on"
        written.append(tensor_file.checksum(tables))
        write(path, tables, state)

    monkeypatch.setattr(ShardedEngine, "step", counted)
    monkeypatch.setattr(loop, "_save", noted)
    monkeypatch.setattr(tensor_file, "write", patient)
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), **SETTINGS)
    assert len(set(given)) == len(given) >= SETTINGS["epochs"]
    assert written[1:] == given
    tables, state = checkpoint.load(out / folder.LAST)
    assert state["epoch"] == SETTINGS["epochs"]
    assert tensor_file.checksum(tables) == given[-1]


def test_without_room_for_a_copy_training_waits(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    to = Tensor.to

    def full(self: Tensor, *given: Any, **named: Any) -> Tensor:
        if named.get("copy"):
            raise MemoryError
        return to(self, *given, **named)

    kept: list[str] = []
    save = Saver.save

    def noted(self: Saver, path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
        save(self, path, tables, state)
        kept.append(tensor_file.checksum(tables))

    monkeypatch.setattr(Tensor, "to", full)
    monkeypatch.setattr(Saver, "save", noted)
    train(small_tree, out=tmp_path / "run", progress=Silent(), **SETTINGS)
    assert len(set(kept)) == len(kept) >= SETTINGS["epochs"]
    assert tensor_file.checksum(checkpoint.load(tmp_path / "run" / folder.LAST)[0]) == kept[-1]


@pytest.mark.parametrize("which", [0, -1])
def test_a_write_that_fails_behind_the_training_is_told(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int
) -> None:
    """The first by the next save; the last, after which there is none, at the end."""
    monkeypatch.setattr(tensor_file, "write", refusing(tensor_file.write, [1, 2, 3][which]))
    out = tmp_path / "run"
    with pytest.raises(RunError, match=r"No space left on device. The previous checkpoint is untouched"):
        train(small_tree, out=out, progress=Silent(), **SETTINGS)
    assert checkpoint.load(out / folder.LAST)[1]["epoch"] == [0, 1, 2][which]
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]


def refusing(write: Any, epoch: int) -> Any:
    """A disk that is full from ``epoch`` on."""

    def full(path: Path, tables: dict[str, Tensor], state: dict[str, Any]) -> None:
        if state["epoch"] >= epoch:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(path, tables, state)

    return full
