"""Chunks of large steps: small enough to answer Ctrl-C and to fit in memory, and a run keeps the size it began with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_training import QUICK, StopAt, assert_same_bits, weights

import murp
from murp.config import Config
from murp.engines import Chunk
from murp.errors import ConfigError, MurpError, RunError
from murp.graph import KnowledgeGraph
from murp.models import Model
from murp.runs import checkpoint
from murp.training import Interrupted, sampler
from murp.training.job import Job
from murp.training.memory import memory_of_a_step
from murp.training.sampler import STEPS_A_CHUNK, Sampler, fewer_steps
from murp.training.start import configure, new_model
from murp.training.state import State

CPU = torch.device("cpu")


@given(batch_size=st.integers(1, 10**6), negatives=st.integers(1, 10**6), dim=st.integers(1, 1000))
def test_a_chunk_is_one_step_or_within_the_bounds(batch_size: int, negatives: int, dim: int) -> None:
    steps = fewer_steps(batch_size, negatives, dim, CPU) or STEPS_A_CHUNK["cpu"]
    objects = batch_size * (1 + negatives)
    assert 1 <= steps <= 256
    assert steps == 1 or (steps * objects <= 2**23 and steps * objects * dim <= 2**27)
    more = (steps + 1) * objects
    assert steps == 256 or more > 2**23 or more * dim > 2**27  # no smaller than it must be


@given(batch_size=st.integers(1, 10**6), negatives=st.integers(1, 10**6), dim=st.integers(1, 1000))
def test_shared_negatives_count_by_their_scores(batch_size: int, negatives: int, dim: int) -> None:
    steps = fewer_steps(batch_size, negatives, dim, CPU, shared=True) or STEPS_A_CHUNK["cpu"]
    scores = batch_size * (1 + negatives)
    assert 1 <= steps <= 256
    assert steps == 1 or steps * scores <= 2**25
    assert steps == 256 or (steps + 1) * scores > 2**25


def test_a_run_whose_batches_share_negatives_has_these_chunks(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "SCORES_A_CHUNK", 60)  # three steps of 4 × 5 scores
        run = murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "corruption": "shared"})
    assert run.state["steps_a_chunk"] == 3


@pytest.mark.parametrize(("batch_size", "negatives"), [(128, 50), (512, 20)])
def test_the_paper_and_the_defaults_keep_the_chunks_that_stored_runs_have(batch_size: int, negatives: int) -> None:
    assert fewer_steps(batch_size, negatives, 40, CPU) is None
    assert fewer_steps(10**6, 10**6, 512, torch.device("cuda")) is None
    rows = np.zeros((10**5, 3), dtype=np.int32)
    assert Sampler(rows, 9, batch_size=batch_size, negatives=negatives, seed=0, device=CPU).steps_a_chunk == 256


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """QUICK's steps have 20 objects: three of them a chunk."""
    monkeypatch.setattr(sampler, "OBJECTS_A_CHUNK", 60)


def test_a_run_goes_on_in_the_chunks_it_began_with(
    small_tree: KnowledgeGraph, tmp_path: Path, small_chunks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = murp.train(small_tree, out=tmp_path / "whole", **QUICK)
    assert whole.state["steps_a_chunk"] == 3
    with pytest.raises(Interrupted):
        murp.train(small_tree, out=tmp_path / "parts", progress=StopAt(20), **QUICK)
    _, state = checkpoint.load(tmp_path / "parts" / "last.safetensors")
    assert (state["epoch"], state["steps_a_chunk"]) == (1, 3)
    assert state["chunk"] > 0
    monkeypatch.undo()  # as a later version with another bound would have it
    murp.resume(tmp_path / "parts")
    assert_same_bits(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def test_a_run_of_a_version_with_one_size_of_chunks_goes_on_in_those(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state does not say how large a chunk is."""
    monkeypatch.setitem(STEPS_A_CHUNK, "cpu", 20)  # two chunks an epoch
    murp.train(small_tree, out=tmp_path / "whole", **QUICK)
    with pytest.raises(Interrupted):
        murp.train(small_tree, out=tmp_path / "parts", progress=StopAt(1), **QUICK)
    _, state = checkpoint.load(tmp_path / "parts" / "last.safetensors")
    assert "steps_a_chunk" not in state
    monkeypatch.setattr(sampler, "OBJECTS_A_CHUNK", 60)
    murp.resume(tmp_path / "parts")
    assert_same_bits(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


def with_state(run: Path, **changes: Any) -> None:
    tables, state = checkpoint.load(run / "last.safetensors")
    checkpoint.save(run / "last.safetensors", tables, {**state, **changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [("epoch", -1), ("chunk", -3), ("chunk", 10**20), ("chunk", 3), ("stale", -1), ("steps_a_chunk", 0),
     ("steps_a_chunk", True), ("steps_a_chunk", "4")],
)  # fmt: skip
def test_a_state_that_cannot_be_is_refused_and_nothing_changes(
    field: str, value: Any, small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "epochs": 2}).path
    with_state(run, **{field: value})
    before = {path: path.read_bytes() for path in run.iterdir() if path.is_file() and path.name != "lock"}
    with pytest.raises(RunError, match=rf"last\.safetensors: .*field '{field}' cannot be"):
        murp.resume(run, epochs=4)
    assert before == {path: path.read_bytes() for path in before}


def test_an_epoch_whose_chunks_are_all_done_is_counted_on_resuming(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """The largest chunk number there is: Ctrl-C came during the last chunk of an epoch."""
    run = murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "epochs": 2}).path
    chunks = 1 + (2 * len(small_tree.train) % QUICK["batch_size"] > 0)
    with_state(run, chunk=chunks, loss=1.0)
    before = weights(run)
    assert len(murp.resume(run, epochs=3).metrics()) == 3
    assert_same_bits(before, weights(run))


def test_a_state_without_a_size_is_written_as_older_versions_read_it() -> None:
    assert "steps_a_chunk" not in State().to_dict()
    state = State(steps_a_chunk=7)
    assert State.from_dict(json.loads(json.dumps(state.to_dict())), Path("last.safetensors")) == state


@pytest.mark.parametrize("allocate", [lambda: np.zeros(2**55), lambda: torch.zeros(2**50), lambda: bytearray(2**62)])
def test_memory_that_is_refused_is_told_by_the_settings_that_take_it(allocate: Any) -> None:
    config = Config(batch_size=77, negatives=99)
    with pytest.raises(MurpError, match=r"77 triples with 99 neg.*--batch-size or --neg.*--resume here"):  # noqa: SIM117
        with memory_of_a_step(Path("here"), config):
            allocate()
    with pytest.raises(RuntimeError, match="illegal memory access"), memory_of_a_step(Path("here"), config):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


@pytest.mark.parametrize("engine", ["torch", "numba"])
@pytest.mark.parametrize(("owner", "name"), [(Chunk, "draw"), (Sampler, "_permutation")])
def test_a_step_without_memory_ends_training_with_a_plain_error(
    engine: str, owner: type, name: str, small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, lambda *given: torch.zeros(2**50))
    with pytest.raises(MurpError, match="no memory for a step on 4 triples with 4 negatives"):
        murp.train(small_tree, out=tmp_path / "run", engine=engine, **QUICK)
    monkeypatch.undo()
    assert murp.resume(tmp_path / "run").state["epoch"] > 0


def test_a_model_without_memory_is_told_where_the_error_has_no_words(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Model, "initialise", refused)
    with pytest.raises(MurpError, match=r"no memory for the .* choose a smaller --dim \(MemoryError\)\."):
        murp.train(small_tree, out=tmp_path / "run", **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_a_failure_of_the_gpu_is_not_called_a_lack_of_memory(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failed(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(Model, "initialise", failed)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        murp.train(small_tree, out=tmp_path / "run", **QUICK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("engine", ["torch", "numba"])
def test_more_rows_than_can_be_numbered_are_refused_before_anything_is_written(
    engine: str, small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    size = 2 * len(small_tree.train)
    huge = {**QUICK, "batch_size": 10**9, "negatives": -(-(2**31) // size) - 2}  # the first that is too many
    with pytest.raises(ConfigError, match=rf"{size} triples.*--batch-size or --negatives"):
        murp.train(small_tree, out=tmp_path / "run", engine=engine, **huge)
    assert list(tmp_path.iterdir()) == []


def test_where_all_entities_are_candidates_a_chunk_is_as_short_as_with_so_many_negatives(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C waits for the end of a chunk, and such a step takes its time."""
    monkeypatch.setattr(sampler, "OBJECTS_A_CHUNK", 5 * 20 * (1 + small_tree.num_entities))
    settings = {"model": "mure", "batch_size": 20, "objective": "one-vs-all", "optimizer": "adagrad", "device": "cpu"}
    _, config = configure(small_tree, settings)
    job = Job(tmp_path / "run", config, small_tree, new_model(config, small_tree), State())
    assert job.state.steps_a_chunk == 5
