"""What goes wrong on one rank is told once, stops every rank, and leaves nothing half-written."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from together import together

import murp
from murp.distributed import join
from murp.errors import MurpError, RunError
from murp.graph import KnowledgeGraph
from murp.runs import Run, folder, tensor_file
from murp.training import resume, train
from murp.training.progress import Silent

SETTINGS: dict[str, Any] = {
    "dim": 6, "batch_size": 60, "negatives": 3, "device": "cpu", "validate_every": 0, "save_every": 0.0, "lr": 0.02,
    "epochs": 2, "engine": "torch",
}  # fmt: skip


def told(found: list[Any]) -> str:
    """The one message of all ranks."""
    errors = [one for one in found if one is not None]
    assert all(isinstance(one, MurpError) for one in errors), found
    loud = [one for one in errors if not one.silent]
    assert len(loud) == 1, found
    return str(loud[0])


def trained(graph: KnowledgeGraph, out: Path, fault: str) -> None:
    settings = dict(SETTINGS)
    if join().rank == 1:
        if fault == "settings":
            settings["lr"] = 0.03
        elif fault == "data":
            graph = KnowledgeGraph(
                name=graph.name, entities=graph.entities, relations=graph.relations,
                train=graph.train[::-1].copy(), valid=graph.valid, test=graph.test,
            )  # fmt: skip
        elif fault == "disk":
            tensor_file.write = refusing  # type: ignore[assignment]
        elif fault == "memory":
            from murp.distributed.engine import ShardedEngine

            ShardedEngine._gradients = starving  # type: ignore[assignment, method-assign]
    train(graph, out=out, progress=Silent(), **settings)


def refusing(*given: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def starving(*given: Any) -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("settings", r"do not have the same settings. Rank 0 and rank 1 differ in lr: 0.02 there, 0.03 here"),
        ("data", r"do not have the same data"),
        ("disk", r"No space left on device"),
    ],
)
def test_before_training_one_message_and_no_folder(
    small_tree: KnowledgeGraph, tmp_path: Path, fault: str, message: str
) -> None:
    import re

    assert re.search(message, told(together(trained, 2, small_tree, tmp_path / "run", fault)))
    assert list(tmp_path.iterdir()) == []


def test_a_rank_without_memory_stops_all(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    found = told(together(trained, 2, small_tree, tmp_path / "run", "memory"))
    assert found.startswith("rank 1 of 2: no memory for a step on 60 triples")
    resume(tmp_path / "run", progress=Silent())


def resumed(out: Path, epochs: int, fault: str) -> None:
    if fault == "disk" and join().rank == 1:
        tensor_file.write = refusing  # type: ignore[assignment]
    resume(out, epochs=epochs, progress=Silent())


def test_a_full_disk_on_one_rank_keeps_the_checkpoint_before(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), slices=2, **SETTINGS)
    before = murp.load(out).model.parameters["entity"].clone()
    found = told(together(resumed, 2, out, 4, "disk"))
    assert "rank 1: No space left on device" in found
    assert "The previous checkpoint is untouched." in found
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]
    assert murp.load(out).model.parameters["entity"].equal(before)


def test_a_missing_shard_is_named(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert together(trained, 2, small_tree, out, "") == [None, None]
    for name in ("last.shards", "last.previous.shards"):
        (out / name / "0001-of-0002.safetensors").unlink()
    message = r"last.shards is not whole: of its 2 files 0001-of-0002.safetensors is missing"
    with pytest.raises(RunError, match=message):
        murp.load(out)
    with pytest.raises(RunError, match=message):
        resume(out, epochs=3, progress=Silent())


def test_of_a_damaged_checkpoint_the_one_before_is_taken(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), slices=2, **SETTINGS)
    file = out / "last.shards" / "0000-of-0001.safetensors"
    bytes_ = bytearray(file.read_bytes())
    bytes_[-1] ^= 1
    file.write_bytes(bytes(bytes_))
    with pytest.warns(UserWarning, match=r"damaged.*Using the checkpoint before it, last.previous.shards"):
        resume(out, progress=Silent())
    assert murp.load(out).state["epoch"] == 2


def test_files_of_two_saves_are_not_mixed(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert together(trained, 2, small_tree, out, "") == [None, None]
    shutil.copy(out / "last.previous.shards" / "0001-of-0002.safetensors", out / "last.shards")
    with pytest.warns(UserWarning, match=r"0001-of-0002.safetensors is not of the same save"):
        murp.load(out)


def test_a_run_of_one_process_is_not_continued_by_many(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), **SETTINGS)
    assert "was started by one process" in told(together(resumed, 2, out, 3, ""))
    assert (out / folder.LAST).exists()


def asked(out: Path, fault: str) -> None:
    """Ask for answers; the second rank diverged, or is killed by the first question."""
    from murp.distributed.searching import Searching
    from murp.models import Model
    from murp.training.sharded import answered

    ranks = join()
    if ranks.rank == 1 and fault == "killed":
        Searching._merged = killed  # type: ignore[assignment, method-assign]
    elif ranks.rank == 1:
        Model.broken = lambda self: ["entity (row 40)"]  # type: ignore[method-assign]

    def answer(run: Run) -> None:
        run.predict(head="n4", relation="next")

    answered(out, ranks, None, "cpu", answer)


def killed(*given: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_rank_that_cannot_answer_stops_all(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    together(trained, 2, small_tree, out, "")
    message = told(together(asked, 2, out, "diverged"))
    assert "rank 1 of 2: the model holds NaN, infinity or points outside the ball in entity (row 40)" in message
    first, second = together(asked, 2, out, "killed")
    assert second is None
    assert first is None or "another rank has stopped" in str(first)  # None: torchrun has stopped it before
