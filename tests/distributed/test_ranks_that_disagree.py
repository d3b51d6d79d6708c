"""Ranks that see other run folders or other checkpoints are refused, with one message, before anything is mixed."""

from __future__ import annotations

import os
import re
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from run_on_ranks import on_ranks
from test_failing_ranks import SETTINGS, told

import murp
from murp.cli.main import main
from murp.distributed import join, saving
from murp.distributed.ranks import _reason
from murp.errors import RunError
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.runs import checkpoint, shards
from murp.runs.run import Checkpoint
from murp.training import resume, sharded, start, train
from murp.training.progress import Silent


def trained(graph: KnowledgeGraph, outs: list[Path]) -> None:
    train(graph, out=outs[join().rank], progress=Silent(), **SETTINGS)


def evaluated(paths: list[Path], which: list[Checkpoint | None]) -> float:
    ranks = join()
    path = paths[ranks.rank]
    return sharded.evaluated(path, ranks, "test", "standard", which[ranks.rank], "cpu", None, 0, None)[1].mrr


def resumed(paths: list[Path]) -> None:
    resume(paths[join().rank], epochs=6, progress=Silent())


@pytest.fixture
def run(small_tree: KnowledgeGraph, tmp_path: Path) -> Path:
    """With a best checkpoint, and epochs after it."""
    settings = {**SETTINGS, "validate_every": 1, "epochs": 4, "lr": 5.0}
    return train(small_tree, out=tmp_path / "run", progress=Silent(), slices=2, **settings).path


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    """The same run at an earlier epoch."""
    place = tmp_path / "copy"
    shutil.copytree(run, place)
    shutil.rmtree(place / "last.shards")
    shutil.copytree(place / "last.previous.shards", place / "last.shards")
    return place


def test_other_run_folders(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    message = told(on_ranks(trained, 2, small_tree, [tmp_path / "a", tmp_path / "b"]))
    assert "do not have the same run folder" in message
    assert list(tmp_path.iterdir()) == []


def trained_unseen(graph: KnowledgeGraph, out: Path, looks: int, patience: float) -> int:
    """As if the second rank did not see the new run folder when it first looks for it. Its epochs."""
    exists = checkpoint.exists

    def later(path: Path) -> bool:
        nonlocal looks
        looks -= path.name == "last.safetensors"
        return looks < 0 and exists(path)

    if join().rank == 1:
        checkpoint.exists, sharded.SIGHT, sharded.PAUSE = later, patience, 0.01
    return int(train(graph, out=out, progress=Silent(), **SETTINGS).state["epoch"])


def test_a_rank_may_see_a_new_run_folder_later(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    assert on_ranks(trained_unseen, 2, small_tree, tmp_path / "late", 3, 60.0) == [2, 2]
    message = told(on_ranks(trained_unseen, 2, small_tree, tmp_path / "never", 1000, 0.1))
    assert "rank 1 of 2: this rank does not see the run folder" in message


def starved(path: Path, out_of_memory: bool) -> None:
    if join().rank == 1 and out_of_memory:
        Model.broken = no_room  # type: ignore[assignment, method-assign]
    resume(path, epochs=6, progress=Silent())


def no_room(*given: Any) -> None:
    raise RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: 24 bytes")


def test_a_rank_without_memory_to_continue_stops_all(run: Path) -> None:
    message = told(on_ranks(starved, 2, run, True))
    assert message.startswith("rank 1 of 2: memory was out ")
    assert on_ranks(starved, 2, run, False) == [None] * 2


def test_other_checkpoints(run: Path) -> None:
    message = told(on_ranks(evaluated, 2, [run, run], ["best", "last"]))
    assert "differ in --checkpoint: rank 0 has best, rank 1 has last" in message


def test_a_copy_of_the_run_with_another_checkpoint(run: Path, copy: Path) -> None:
    expected = r"do not have the same checkpoints.*last\.shards: rank 0 has epoch 4 .* rank 1 has epoch 3 .*not a copy"
    for found in (on_ranks(evaluated, 2, [run, copy], ["last", "last"]), on_ranks(resumed, 2, [run, copy])):
        assert re.search(expected, told(found))
    assert murp.load(run, checkpoint="last").state["epoch"] == 4
    assert murp.load(copy, checkpoint="last").state["epoch"] == 3


class Unresolved(type(Path())):  # type: ignore[misc]
    """A path that each rank may see as another one."""

    def resolve(self, strict: bool = False) -> Unresolved:
        return self


def started_from(graph: KnowledgeGraph, places: list[Path], source: str, out: Path) -> None:
    os.chdir(places[join().rank])
    start.Path = Unresolved  # type: ignore[misc]
    train(graph, out=out, progress=Silent(), init_from=source, **SETTINGS)


def test_ranks_that_start_from_different_weights_are_refused(
    small_tree: KnowledgeGraph, run: Path, copy: Path, tmp_path: Path
) -> None:
    """As where every machine has a folder of its own at the same path."""
    places = [tmp_path / "a", tmp_path / "b"]
    for place, one in zip(places, (run, copy), strict=True):
        place.mkdir()
        (place / "source").symlink_to(one)
        for best in one.glob("best*"):
            shutil.rmtree(best)
    message = told(on_ranks(started_from, 2, small_tree, places, "source", tmp_path / "out"))
    assert re.search(r"do not have the same weights to start from. .* --init-from: rank 0 has .*4\), rank 1", message)
    assert not (tmp_path / "out").exists()
    assert on_ranks(started_from, 2, small_tree, [places[0]] * 2, "source", tmp_path / "out") == [None] * 2


def started_meanwhile(graph: KnowledgeGraph, source: Path, new: Path, out: Path) -> None:
    """The source of the weights saves while they are read, of which rank 1 is told."""
    usual = sharded.new_model

    def read(*given: Any) -> Any:
        model = usual(*given)
        if join().rank == 1:
            shutil.rmtree(source / "last.shards")
            shutil.copytree(new / "last.shards", source / "last.shards")
        return model

    sharded.new_model = read  # type: ignore[assignment]
    train(graph, out=out, progress=Silent(), init_from=str(source), **SETTINGS)


def test_weights_that_change_while_they_are_read_are_refused(
    small_tree: KnowledgeGraph, run: Path, copy: Path, tmp_path: Path
) -> None:
    for best in copy.glob("best*"):
        shutil.rmtree(best)
    message = told(on_ranks(started_meanwhile, 2, small_tree, copy, run, tmp_path / "out"))
    assert "has saved while its weights were read" in message
    assert not (tmp_path / "out").exists()


Renames = list[tuple[Path, Path]]


def evaluated_meanwhile(path: Path, changes: list[Renames], one_before: bool) -> tuple[float, list[str]]:
    """The metric and the warnings if a training makes one of the ``changes`` before each of the ranks' first looks.

    ``one_before``: the first rank looks before a change, and the other after it; otherwise both look after it.
    """
    ranks, real, looks = join(), shards.look, 0

    def look(place: Path) -> Any:
        nonlocal looks
        begins = place.name == "last.shards"  # a look, which ends with the checkpoint before
        looks += begins
        if looks > len(changes):
            return real(place)
        if begins and one_before and ranks.rank == 1:
            ranks.agreed(True)  # the first rank has looked
        if begins and ranks.rank == 1:
            for old, new in changes[looks - 1]:
                old.replace(new)
        if begins and not one_before:
            ranks.agreed(True)
        found = real(place)
        if not begins and one_before and ranks.rank == 0:
            ranks.agreed(True)
        return found

    shards.look = look
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        mrr = evaluated([path, path], ["last", "last"])
    return mrr, [str(one.message) for one in said]


@pytest.mark.parametrize(("at_once", "one_before"), [(True, True), (False, True), (False, False)])
def test_ranks_look_again_while_a_training_saves(run: Path, copy: Path, at_once: bool, one_before: bool) -> None:
    """Between the two renames of a save there is no ``last.shards``."""
    expected = murp.load(run, checkpoint="last").evaluate("test").mrr
    assert murp.load(copy, checkpoint="last").evaluate("test").mrr != expected
    home, older, new = (copy / f"last.{name}" for name in ("shards", "previous.shards", "new"))
    shutil.copytree(run / "last.shards", new)
    shutil.rmtree(older)
    renames = [(home, older), (new, home)]
    changes = [renames] if at_once else [renames[:1], renames[1:]]
    assert on_ranks(evaluated_meanwhile, 2, copy, changes, one_before) == [(pytest.approx(expected), [])] * 2


def evaluated_then_saved(path: Path, new: Path) -> float:
    """The metric if a training saves after the ranks have checked the files, and before they read them."""
    ranks, real = join(), shards.Opened.verify

    def verify(self: shards.Opened, **share: int) -> None:
        real(self, **share)
        ranks.agreed(True)
        if ranks.first:
            saving._put(new, path / "last.shards")
        ranks.agreed(True)

    shards.Opened.verify = verify  # type: ignore[method-assign]
    return evaluated([path, path], ["last", "last"])


def test_ranks_read_the_checkpoint_that_they_have_checked(run: Path, copy: Path) -> None:
    before = murp.load(copy, checkpoint="last").evaluate("test").mrr
    after = murp.load(run, checkpoint="last").evaluate("test").mrr
    assert before != after
    new = Path(shutil.copytree(run / "last.shards", copy / "new"))
    assert on_ranks(evaluated_then_saved, 2, copy, new) == [pytest.approx(before)] * 2
    assert murp.load(copy, checkpoint="last").evaluate("test").mrr == after


def test_without_a_shard_ranks_use_the_checkpoint_before_as_one_process_does(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    on_ranks(trained, 2, small_tree, [out, out])
    (out / "last.shards" / "0001-of-0002.safetensors").unlink()
    with pytest.warns(UserWarning, match=r"Using the checkpoint before it, last\.previous\.shards, of epoch 1") as said:
        expected = murp.load(out).evaluate("test").mrr
    found = on_ranks(evaluated_meanwhile, 2, out, [], False)
    assert found == [(pytest.approx(expected), [str(said[0].message)]), (pytest.approx(expected), [])]
    assert (out / "last.shards").exists()  # asking changes nothing


def test_of_two_lost_saves_ranks_say_what_one_process_says(run: Path) -> None:
    for name in ("last.shards", "last.previous.shards"):
        (run / name / "0000-of-0001.safetensors").write_bytes(b"no checkpoint")
    with pytest.raises(
        RunError, match=r"best\.shards is another: evaluate and predict with `--checkpoint best`"
    ) as one:
        murp.load(run, checkpoint="last")
    for found in (on_ranks(evaluated, 2, [run, run], ["last", "last"]), on_ranks(resumed, 2, [run, run])):
        assert told(found) == str(one.value)


def test_a_damaged_best_checkpoint_is_told_by_info_and_says_how_training_goes_on(run: Path) -> None:
    (run / "best.shards" / "0000-of-0001.safetensors").write_bytes(b"no checkpoint")
    shutil.rmtree(run / "best.previous.shards", ignore_errors=True)
    with pytest.warns(UserWarning, match=r"best\.shards/0000-of-0001\.safetensors is damaged.*last\.shards is another"):
        assert main(["info", str(run)]) == 0
    with pytest.raises(RunError, match=r"remove .*best\.shards, and resume again"):
        resume(run, epochs=5, progress=Silent())
    shutil.rmtree(run / "best.shards")
    assert resume(run, epochs=5, progress=Silent()).state["epoch"] == 5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[../gloo/transport/tcp/pair.cc:537] Connection closed by peer [127.0.0.1]:1234. This may be a crash.",
            "Connection closed by peer [127.0.0.1]:1234",
        ),
        ("Broken pipe", "Broken pipe"),
    ],
)
def test_of_what_torch_distributed_says_the_reason_is_told(text: str, said: str) -> None:
    assert _reason(RuntimeError(text)) == said


@pytest.mark.parametrize("model", ["poincare", "lorentz"])
def test_models_without_relations_train_on_slices(small_tree: KnowledgeGraph, tmp_path: Path, model: str) -> None:
    found = [
        train(small_tree, out=tmp_path / engine, progress=Silent(), **{**SETTINGS, "model": model, **more})
        for engine, more in (("whole", {"engine": "torch"}), ("slices", {"slices": 3}))
    ]
    losses: list[Any] = [[line["loss"] for line in run.metrics()] for run in found]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
