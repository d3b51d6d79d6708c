"""Each of many ranks has a share of the training triples, and the batches are those of one process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from outcome import outcome
from run_on_ranks import on_ranks
from test_training_of_ranks import SETTINGS, trained
from torch import Tensor

from murp.distributed import join
from murp.distributed import triples as module
from murp.distributed.plan import own_part
from murp.distributed.ranks import OnTheWay, Ranks
from murp.distributed.shares import Share
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder
from murp.testing import tree
from murp.training import Interrupted, resume, sampler
from murp.training.distributed_sampler import DistributedSampler
from murp.training.progress import Silent
from murp.training.sampler import Sampler

CPU = torch.device("cpu")
OPTIONS: dict[str, Any] = {"negatives": 2, "seed": 5, "device": CPU}


class Threads(Ranks):
    """A rank that is a thread of this process; ``board`` has what each sends."""

    def __init__(self, rank: int, board: list[Any], barrier: threading.Barrier) -> None:
        super().__init__(rank, len(board))
        self.board, self.barrier = board, barrier

    def begin(self, values: Tensor, outgoing: Sequence[int], incoming: Sequence[int]) -> OnTheWay:
        self.board[self.rank] = torch.split(values, list(outgoing))
        self.barrier.wait()
        parts = [of[self.rank] for of in self.board]
        self.barrier.wait()
        assert [len(part) for part in parts] == list(incoming)
        return OnTheWay(values, torch.cat(parts), None)


def beside(work: Callable[[Ranks], Any], size: int) -> list[Any]:
    """What ``work`` gives on each of ``size`` ranks; if one fails, the others do not wait for it."""
    board, barrier = [None] * size, threading.Barrier(size)

    def guarded(rank: int) -> Any:
        try:
            return work(Threads(rank, board, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(guarded, range(size)))


def graph_of(facts: int, seed: int = 0) -> KnowledgeGraph:
    """A graph of so many random training facts."""
    base, draw = tree(), np.random.default_rng(seed)
    bounds = (base.num_entities, base.num_relations, base.num_entities)
    return replace(base, train=np.column_stack([draw.integers(n, size=facts, dtype=np.int32) for n in bounds]))


@settings(max_examples=60, deadline=None)
@given(
    facts=st.integers(1, 120), batch=st.integers(1, 40), slices=st.integers(1, 7), size=st.integers(1, 5),
    steps=st.integers(1, 9), at_once=st.sampled_from([1, 50, 2**22]), reciprocals=st.booleans(),
    places=st.lists(st.tuples(st.integers(0, 2), st.floats(0, 0.999)), min_size=1, max_size=4),
)  # fmt: skip
@example(facts=30, batch=12, slices=3, size=5, steps=2, at_once=50, reciprocals=True, places=[(0, 0.0)])  # idle ranks
def test_the_parts_of_the_ranks_are_the_batches_of_one_process(
    facts: int, batch: int, slices: int, size: int, steps: int, at_once: int, reciprocals: bool, places: list[Any]
) -> None:
    """Of any chunks in any order: that is what resuming asks for."""
    graph = graph_of(facts)
    options = {**OPTIONS, "batch_size": batch, "steps_a_chunk": steps}
    triples = graph.with_reciprocals(graph.train) if reciprocals else graph.train
    whole = Sampler(triples, graph.num_entities, **options)
    asked = [(epoch, int(share * whole.chunks)) for epoch, share in places]

    def work(ranks: Ranks) -> list[Any]:
        divided = DistributedSampler(graph, ranks, slices, reciprocals=reciprocals, **options)
        assert (divided.steps, divided.chunks) == (whole.steps, whole.chunks)
        return [divided.chunk(*place) for place in asked]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_ONCE", at_once)
        found = beside(work, size)
    for number, place in enumerate(asked):
        expected = whole.chunk(*place)
        parts = [chunks[number] for chunks in found]
        assert torch.equal(torch.cat([part.positives for part in parts], 1), expected.positives)
        for rank, part in enumerate(parts):
            assert part.first == own_part(expected.batch, slices, rank, size).start
            assert (part.seed, part.batch, part.triples) == (expected.seed, expected.batch, expected.triples)


def stored(of: Any) -> int:
    """Bytes of the memory behind all tensors and arrays of an object; a view counts as all that it is a view of."""
    if isinstance(of, Tensor):
        return of.untyped_storage().nbytes()
    if isinstance(of, np.ndarray):
        return stored(of.base) if of.base is not None else of.nbytes
    if isinstance(of, (tuple, list)):
        return sum(map(stored, of))
    return 0


@pytest.mark.parametrize("size", [2, 4])
def test_a_rank_holds_its_share_and_the_triples_of_its_slices(size: int) -> None:
    graph = graph_of(3000)
    count = 2 * len(graph.train)

    def work(ranks: Ranks) -> int:
        divided = DistributedSampler(graph, ranks, size, batch_size=100, **OPTIONS)
        divided.chunk(0, 0)
        divided.chunk(1, 0)
        return sum(stored(value) for value in vars(divided).values())

    assert beside(work, size) == [2 * 12 * count // size] * size
    whole = Sampler(graph.with_reciprocals(graph.train), graph.num_entities, batch_size=100, **OPTIONS)
    whole.chunk(0, 0)
    assert sum(stored(value) for value in vars(whole).values()) == (12 + 4) * count


@settings(max_examples=30, deadline=None)
@given(facts=st.integers(1, 30), size=st.integers(1, 9), reciprocals=st.booleans())
def test_shares_are_all_triples(facts: int, size: int, reciprocals: bool) -> None:
    graph = graph_of(facts)
    whole = graph.with_reciprocals(graph.train) if reciprocals else graph.train
    shares = [Share(len(whole), rank, size) for rank in range(size)]
    parts = [module.share_of(graph, share, reciprocals=reciprocals) for share in shares]
    assert [len(part) for part in parts] == [len(share) for share in shares]
    assert np.array_equal(np.concatenate(parts), whole)
    assert not any(np.shares_memory(part, graph.train) for part in parts)


def test_bytes_of_triples_are_12_for_each_that_another_rank_has() -> None:
    from scale_model import bytes_of_triples  # here, since every rank imports this file

    graph = graph_of(5000)
    found = on_ranks(sent, 3, graph)
    for measured, expected in found:
        assert measured == expected
        assert measured == pytest.approx(bytes_of_triples(2 * len(graph.train) / 3, 3), rel=0.1)


def sent(graph: KnowledgeGraph) -> tuple[int, int]:
    """Bytes that this rank has sent for an epoch, and the triples of its share in slices of others, 12 bytes each."""
    ranks = join()
    before, batch, slices = ranks.sent, 64, 6
    DistributedSampler(graph, ranks, slices, batch_size=batch, **OPTIONS).chunk(0, 0)
    count = 2 * len(graph.train)
    whole = Sampler(np.arange(3 * count, dtype=np.int32).reshape(count, 3), 9, batch_size=batch, **OPTIONS)
    share = Share(count, ranks.rank, ranks.size)
    theirs = 0
    for index in range(whole.chunks):
        numbers = whole.chunk(0, index).positives[..., 0] // 3
        part = own_part(numbers.shape[1], slices, ranks.rank, ranks.size)
        held = (numbers >= share.start) & (numbers < share.stop)
        theirs += int(held.sum()) - int(held[:, part].sum())
    return ranks.sent - before, 12 * theirs


def few_steps() -> None:
    """Epochs of many chunks, so that a run can stop within one."""
    sampler.OBJECTS_A_CHUNK = 60 * 3


def stopped(graph: KnowledgeGraph | None, out: Path, steps: int) -> str:
    """Train, or go on, and press Ctrl-C on the last rank in so many steps."""
    from murp.distributed.engine import ShardedEngine

    few_steps()
    made, whole = [0], ShardedEngine.step

    def step(self: ShardedEngine, *given: Any) -> Any:
        made[0] += 1
        if made[0] == steps and self.ranks.rank == self.ranks.size - 1:
            os.kill(os.getpid(), signal.SIGINT)
        return whole(self, *given)

    ShardedEngine.step = step  # type: ignore[method-assign]
    try:
        if graph is None:
            resume(out, progress=Silent())
        else:
            trained(graph, out, {**SETTINGS, "slices": 4, "epochs": 2})
    except Interrupted as error:
        return str(error)
    return "the end"


def test_resumed_within_an_epoch_on_any_number_of_ranks_it_is_the_run_of_one_process(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "OBJECTS_A_CHUNK", 60 * 3)  # few_steps, undone at the end
    calm, out = tmp_path / "calm", tmp_path / "run"
    trained(small_tree, calm, {**SETTINGS, "slices": 4, "epochs": 2})
    for size, graph in ((4, small_tree), (2, None), (3, None)):
        said = on_ranks(stopped, size, graph, out, 4)
        assert all(text.startswith("stopped in epoch") for text in said), said
        assert checkpoint.load(out / folder.LAST)[1]["chunk"] > 0
    resume(out, progress=Silent())
    assert outcome(out) == outcome(calm)


KINDS = ["with-head", "both-sides", "shared", "local", "checked", "by-relation"]
CASES: dict[str, dict[str, Any]] = {
    **{kind: {"corruption": kind, "batch_size": 20} for kind in KINDS},
    # An only fact and its reciprocal: fewer triples than ranks and slices.
    "tiny": {"corruption": "uniform", "batch_size": 5},
}


def every_case(graph: KnowledgeGraph, out: Path) -> list[int]:
    """Train all cases, without validation; the longest list of facts in each that was given reciprocals."""
    found, whole = [], KnowledgeGraph.with_reciprocals
    seen: list[int] = []

    def spied(self: KnowledgeGraph, triples: Any) -> Any:
        seen.append(len(triples))
        return whole(self, triples)

    KnowledgeGraph.with_reciprocals = spied  # type: ignore[method-assign]
    for name, chosen in CASES.items():
        given = replace(graph, train=graph.train[:1]) if name == "tiny" else graph
        trained(given, out / name, {**SETTINGS, "slices": 5, "epochs": 1, "validate_every": 0, **chosen})
        found.append(max(seen))
        seen.clear()
    KnowledgeGraph.with_reciprocals = whole  # type: ignore[method-assign]
    return found


def test_every_kind_of_negatives_and_the_smallest_graph(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """The same bits as one process; only negatives that read facts see them all."""
    one, many = (tmp_path / name for name in ("one", "many"))
    for place in (one, many):
        place.mkdir()
    every_case(small_tree, one)
    found = on_ranks(every_case, 3, small_tree, many)
    for name in CASES:
        (weights, state), (expected, state_of_one) = (checkpoint.load(run / name / folder.LAST) for run in (many, one))
        assert state["loss"] == state_of_one["loss"]
        assert [m["loss"] for m in folder.read_metrics(many / name)] == [
            m["loss"] for m in folder.read_metrics(one / name)
        ]
        assert {table: rows.numpy().tobytes() for table, rows in weights.items()} == {
            table: rows.numpy().tobytes() for table, rows in expected.items()
        }, name
    facts = len(small_tree.train)
    for longest in found:
        of = dict(zip(CASES, longest, strict=True))
        assert of["checked"] == of["by-relation"] == facts
        assert all(of[name] <= -(-2 * facts // 3) for name in ("with-head", "both-sides", "shared", "local"))
