"""What goes wrong on one rank is told once, stops every rank, and leaves nothing half-written."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from run_on_ranks import on_ranks
from torch.distributed.checkpoint.api import CheckpointException

import murp
from murp.distributed import join
from murp.distributed import ranks as module
from murp.errors import ConfigError, MurpError, RunError
from murp.graph import KnowledgeGraph, Split, Vocabulary
from murp.models import Model
from murp.runs import Run, folder, shards, tensor_file
from murp.training import resume, sharded, train
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
        elif fault == "names":
            ids = graph.entities.ids.to_pylist()
            graph = replace(graph, entities=Vocabulary("entity", ids[1:] + ids[:1]))
        elif fault == "memory for a new model":
            Model.broken = starving  # type: ignore[assignment, method-assign]
        elif fault == "disk":
            tensor_file.write = refusing  # type: ignore[assignment]
        elif fault == "memory":
            from murp.distributed.engine import ShardedEngine

            ShardedEngine._gradients = starving  # type: ignore[assignment, method-assign]
        elif fault == "memory to send":
            module.dist.all_to_all_single = unsent
        elif fault == "killed in a step":
            from murp.distributed.engine import ShardedEngine

            ShardedEngine._gradients = killed  # type: ignore[assignment, method-assign]
        elif fault == "killed in a save":
            tensor_file.write = killed  # type: ignore[assignment]
    if "killed" in fault:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun stops the others: often before they say anything
    train(graph, out=out, progress=Silent(), **settings)


def refusing(*given: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def starving(*given: Any, **options: Any) -> None:
    raise MemoryError


def unsent(*given: Any, **options: Any) -> None:
    raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory")


def killed(*given: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("settings", r"do not have the same settings. They differ in lr: rank 0 has 0.02, rank 1 has 0.03"),
        ("data", r"do not have the same data"),
        ("names", r"do not have the same data. They differ in digest of entity ids: rank 0 has"),
        ("memory for a new model", r"rank 1 of 2: memory was out \(MemoryError\). Use more ranks"),
        ("disk", r"No space left on device"),
    ],
)
def test_before_training_one_message_and_no_folder(
    small_tree: KnowledgeGraph, tmp_path: Path, fault: str, message: str
) -> None:
    import re

    assert re.search(message, told(on_ranks(trained, 2, small_tree, tmp_path / "run", fault)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fault", ["memory", "memory to send"])
def test_a_rank_without_memory_stops_all(small_tree: KnowledgeGraph, tmp_path: Path, fault: str) -> None:
    found = told(on_ranks(trained, 2, small_tree, tmp_path / "run", fault))
    assert found.startswith("rank 1 of 2: no memory for a step on 60 triples")
    resume(tmp_path / "run", progress=Silent())


@pytest.mark.parametrize("fault", ["killed in a step", "killed in a save"])
def test_of_a_rank_that_is_killed_one_other_tells(small_tree: KnowledgeGraph, tmp_path: Path, fault: str) -> None:
    """The first save makes the run folder: without it the same command starts again."""
    out = tmp_path / "run"
    found = on_ranks(trained, 3, small_tree, out, fault)
    assert [one is None for one in found] == [False, True, False]
    message = told(found)
    assert message.startswith("another rank has stopped without a message")
    if fault == "killed in a save":
        assert message.endswith("Then start the same command again.")
        assert list(tmp_path.iterdir()) == []
    else:
        assert f"continue with `murp train --resume {out}`, with torchrun or without it." in message
        assert "the same command" not in message
        resume(out, progress=Silent())
    assert on_ranks(trained, 3, small_tree, out, "") == [None] * 3


def mistaken(graph: KnowledgeGraph, out: Path) -> str:
    """A model of a user's own that fails in its first step, on every rank."""
    from murp.distributed.engine import ShardedEngine

    def gradients(*given: Any) -> None:
        raise KeyError("entitty")

    ShardedEngine._gradients = gradients  # type: ignore[assignment, method-assign]
    try:
        train(graph, out=out, progress=Silent(), **SETTINGS)
    except KeyError as error:
        join().agreed(True)  # both have failed: none notices that the other one is gone
        return str(error)
    return "trained"


def test_of_a_model_that_fails_in_its_first_step_no_run_folder_stays(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    assert on_ranks(mistaken, 2, small_tree, tmp_path / "run") == ["'entitty'"] * 2
    assert list(tmp_path.iterdir()) == []


def again(graph: KnowledgeGraph, out: Path, lr: float) -> int:
    isfile = os.path.isfile

    def once_not(path: Any) -> bool:
        if Path(path) != out / folder.CONFIG:
            return isfile(path)
        os.path.isfile = isfile
        return False

    if join().rank == 1:  # its folder of the network does not show the run yet
        os.path.isfile = once_not  # type: ignore[assignment]
    return int(train(graph, out=out, progress=Silent(), **{**SETTINGS, "lr": lr}).state["epoch"])


def test_the_first_rank_decides_whether_a_run_is_there(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), slices=2, **SETTINGS)
    before = (out / "last.shards" / "0000-of-0001.safetensors").read_bytes()
    assert on_ranks(again, 2, small_tree, out, 0.02) == [2, 2]
    assert (out / "last.shards" / "0000-of-0001.safetensors").read_bytes() == before
    found = told(on_ranks(again, 2, small_tree, out, 0.03))
    assert "exists already: it holds a run with other settings (lr: 0.02 there, 0.03 wanted)" in found


def evaluated(out: Path, fault: str) -> None:
    if fault == "memory" and join().rank == 1:
        sharded.evaluate = starving  # type: ignore[assignment]
    split: Split = "test" if fault else "valid"
    sharded.evaluated(out, join(), split, "standard", None, "cpu", None, 0, None)


@pytest.mark.parametrize(
    ("fault", "message"), [("", "the valid split has no triples"), ("memory", "rank 1 of 2: memory was out")]
)
def test_a_failed_evaluation_is_told_once(small_tree: KnowledgeGraph, tmp_path: Path, fault: str, message: str) -> None:
    out = tmp_path / "run"
    graph = KnowledgeGraph(
        name=small_tree.name, entities=small_tree.entities, relations=small_tree.relations,
        train=small_tree.train, valid=small_tree.valid[:0], test=small_tree.test,
    )  # fmt: skip
    train(graph, out=out, progress=Silent(), slices=2, **SETTINGS)
    assert message in told(on_ranks(evaluated, 2, out, fault))


def test_more_ranks_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(module.torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(module.torch.cuda, "set_device", chosen.append)
    module.own_gpu()
    assert chosen == []  # without torchrun PyTorch's choice stays
    for name, value in {module.RUN_ID: "x", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)
    module.own_gpu()
    assert chosen == [1]
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(ConfigError, match=r"has 2 GPUs and 3 ranks.* --nproc-per-node 2, or .* --device cpu"):
        module.own_gpu()
    assert chosen == [1]


def test_what_ends_a_training_reads_no_table(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every rank would read those of all ranks."""
    run = train(small_tree, out=tmp_path / "run", progress=Silent(), slices=2, **SETTINGS)

    def verify(self: tensor_file.File) -> None:
        raise AssertionError(self.path)

    monkeypatch.setattr(tensor_file.File, "verify", verify)
    assert sharded.opened(run.path, run.config, run.graph).state == run.state


@pytest.mark.parametrize(("message", "told"), [("out of memory", MurpError), ("CUDA error: misaligned", RuntimeError)])
def test_only_a_lack_of_memory_asks_for_more_ranks(
    small_tree: KnowledgeGraph, monkeypatch: pytest.MonkeyPatch, message: str, told: type[Exception]
) -> None:
    def zeros(*given: Any, **options: Any) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(sharded.torch, "zeros", zeros)
    with pytest.raises(told, match=message):
        sharded._empty(murp.Config(slices=2, device="cpu"), small_tree, module.Ranks())


def threadless(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_a_rank_without_room_for_a_thread_says_that_memory_was_out(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's words, gloo's, and those of nobody: a MemoryError has none."""
    for words in ("can't start new thread", "Resource temporarily unavailable"):
        with pytest.raises(MurpError, match=f"memory was out .{words}"), module.Ranks().together():
            raise RuntimeError(words)
    with (
        pytest.raises(OSError, match="could not be written by rank 1: MemoryError"),
        shards._plain(tmp_path, "written"),
    ):
        raise CheckpointException("write", {1: (MemoryError(), None)})  # type: ignore[dict-item]
    monkeypatch.setattr(module, "_speaks", None)
    monkeypatch.setattr(module, "_store", SimpleNamespace(add=lambda key, more: 2))
    monkeypatch.setattr(module, "_status", 0)
    monkeypatch.setattr(module.dist, "new_group", starving)
    with pytest.raises(MurpError, match="rank 1 of 2: memory was out"):
        module.Ranks(1, 2).aside()
    submit = ThreadPoolExecutor.submit

    def without(self: ThreadPoolExecutor, *given: Any) -> Any:
        monkeypatch.setattr(threading.Thread, "start", threadless)
        return submit(self, *given)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", without)
    with pytest.raises(MurpError, match=r"memory was out \(can't start new thread\)"):
        train(small_tree, out=tmp_path / "run", progress=Silent(), **SETTINGS)
    assert not module.speaks(), "another rank was first"


def resumed(out: Path, epochs: int, fault: str) -> None:
    if fault == "disk" and join().rank == 1:
        tensor_file.write = refusing  # type: ignore[assignment]
    resume(out, epochs=epochs, progress=Silent())


def test_a_full_disk_on_one_rank_keeps_the_checkpoint_before(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), slices=2, **SETTINGS)
    before = murp.load(out).model.parameters["entity"].clone()
    found = told(on_ranks(resumed, 2, out, 4, "disk"))
    assert "rank 1: No space left on device" in found
    assert "The previous checkpoint is untouched." in found
    assert not [path for path in out.iterdir() if path.name.endswith(".part")]
    assert murp.load(out).model.parameters["entity"].equal(before)


def test_a_missing_shard_is_named(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert on_ranks(trained, 2, small_tree, out, "") == [None, None]
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
    assert on_ranks(trained, 2, small_tree, out, "") == [None, None]
    shutil.copy(out / "last.previous.shards" / "0001-of-0002.safetensors", out / "last.shards")
    with pytest.warns(UserWarning, match=r"0001-of-0002.safetensors is not of the same save"):
        murp.load(out)


def test_a_run_of_one_process_is_not_continued_by_many(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(small_tree, out=out, progress=Silent(), **SETTINGS)
    assert "was started by one process" in told(on_ranks(resumed, 2, out, 3, ""))
    assert (out / folder.LAST).exists()


def asked(out: Path, fault: str, failing: int) -> None:
    """Ask for answers; a rank diverged, or fails at the first question."""
    from murp.distributed.searching import Searching
    from murp.models import Model
    from murp.training.sharded import answered

    ranks = join()
    if fault == "killed":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # see trained
    if ranks.rank == failing and fault == "diverged":
        Model.broken = lambda self: ["entity (row 40)"]  # type: ignore[method-assign]
    elif ranks.rank == failing:
        Searching._merged = killed if fault == "killed" else starving  # type: ignore[assignment, method-assign]

    def answer(run: Run) -> None:
        run.predict(head="nobody" if fault == "mistake" else "n4", relation="next")

    answered(out, ranks, None, "cpu", answer)


def test_a_rank_that_cannot_answer_stops_all(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    out = tmp_path / "run"
    on_ranks(trained, 2, small_tree, out, "")
    message = told(on_ranks(asked, 2, out, "diverged", 1))
    assert "rank 1 of 2: the model holds NaN, infinity or points outside the ball in entity (row 40)" in message
    for rank in (0, 1):
        assert told(on_ranks(asked, 2, out, "memory", rank)).startswith(f"rank {rank} of 2: memory was out")
    found = on_ranks(asked, 2, out, "killed", 1)
    assert found[1] is None
    message = told(found)
    assert message.startswith("another rank has stopped without a message")
    assert message.endswith("Then start the same command again.")


def test_a_mistake_of_the_one_who_asks_is_no_failure_of_a_rank(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    on_ranks(trained, 2, small_tree, tmp_path / "run", "")
    found = on_ranks(asked, 2, tmp_path / "run", "mistake", 0)
    assert found[1] is None
    assert told(found) == "unknown entity 'nobody'."


def pausing(out: Path) -> int:
    """The first rank waits before its question, for longer than ranks usually wait for each other here.

    Returns the number of answers.
    """
    from torch.distributed import distributed_c10d

    from murp.training.sharded import answered

    distributed_c10d._get_default_timeout = lambda backend: timedelta(seconds=4)
    found: list[Any] = []

    def answer(run: Run) -> None:
        time.sleep(6)
        found.extend(run.predict(head="n4", relation="next", k=3))

    answered(out, join(), None, "cpu", answer)
    return len(found)


def test_helpers_wait_for_the_next_question(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = train(small_tree, out=tmp_path / "run", progress=Silent(), slices=2, **SETTINGS)
    assert on_ranks(pausing, 2, run.path) == [3, 0]
