"""Many ranks train the same model as one process: bit for bit with as many slices, in any number of them."""

from __future__ import annotations

import os
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from outcome import outcome
from run_on_ranks import on_ranks

import murp
from murp import models
from murp.config import Config
from murp.distributed import Ranks, ShardedEngine, join
from murp.distributed.plan import cut, own_slices
from murp.distributed.saving import Saver
from murp.distributed.shares import Share, initialise
from murp.errors import ConfigError, RunError
from murp.evaluation.ranks import rank
from murp.graph import KnowledgeGraph, KnownFacts
from murp.runs import checkpoint, folder, tensor_file
from murp.testing import tree
from murp.training import resume, train
from murp.training.progress import Silent
from murp.training.sharded import refuse

SETTINGS: dict[str, Any] = {
    "dim": 6, "batch_size": 20, "negatives": 2, "device": "cpu", "validate_every": 1, "save_every": 0.0, "lr": 0.02,
    "optimizer": "adam", "engine": "torch",
}  # fmt: skip


def trained(graph: KnowledgeGraph, out: Path, settings: dict[str, Any]) -> None:
    train(graph, out=out, reuse=False, progress=Silent(), **settings)


def hastened(*given: Any) -> None:
    """:func:`trained` on a graph that counts as large: rows that a step does not move are sent ahead of the next."""
    from murp.distributed import plan

    plan.SPARSE = 0
    trained(*given)


def continued(out: Path, epochs: int) -> None:
    resume(out, epochs=epochs, progress=Silent())


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process, its batches cut into four."""
    out = tmp_path_factory.mktemp("calm") / "run"
    trained(tree(), out, {**SETTINGS, "slices": 4, "epochs": 4})
    return out


def test_resumed_on_any_number_of_ranks_it_is_the_run_of_one_process(
    small_tree: KnowledgeGraph, calm: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    on_ranks(hastened, 4, small_tree, out, {**SETTINGS, "epochs": 1})
    assert folder.read_config(out).slices == 4
    assert on_ranks(continued, 3, out, 3) == [None] * 3
    assert len(list((out / "last.shards").iterdir())) == 3
    info = murp.load(out).info()
    assert info.lines()["divided"].startswith(
        "the newest checkpoint into 3 files, one of each rank that wrote it; a batch"
    )
    assert info.to_dict()["files"] == 3
    continued(out, 4)
    assert outcome(out) == outcome(calm)


@pytest.mark.parametrize("many", [False, True], ids=["of one process", "of three ranks"])
@pytest.mark.parametrize("mapped", [False, True], ids=["read", "mapped"])
def test_ranks_start_from_the_weights_of_another_run_as_one_process_does(
    many: bool, mapped: bool, small_tree: KnowledgeGraph, calm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a graph with some of its entities, in another order, and with others."""
    if many:
        source = tmp_path / "source"
        assert on_ranks(trained, 3, small_tree, source, {**SETTINGS, "epochs": 4}) == [None] * 3
        calm = source
    if mapped:
        monkeypatch.setattr(checkpoint, "LARGE", 0)
    entities, relations = (names.ids.to_pylist() for names in (small_tree.entities, small_tree.relations))
    facts = [(entities[s], relations[r], entities[o]) for s, r, o in small_tree.train[::-1] if 7 not in (s, o)]
    graph = KnowledgeGraph.from_triples([*facts, ("new", relations[0], entities[4])])
    settings = {**SETTINGS, "slices": 3, "epochs": 2, "init_from": str(calm)}
    trained(graph, tmp_path / "one", settings)
    assert on_ranks(trained, 3, graph, tmp_path / "many", settings) == [None] * 3
    assert outcome(tmp_path / "one") == outcome(tmp_path / "many")
    trained(graph, tmp_path / "fresh", {**settings, "init_from": ""})
    assert outcome(tmp_path / "fresh") != outcome(tmp_path / "one")


def test_validation_among_candidates_is_that_of_one_process(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = {**SETTINGS, "slices": 3, "epochs": 3, "validate_candidates": 20}
    trained(small_tree, tmp_path / "one", settings)
    assert on_ranks(trained, 3, small_tree, tmp_path / "many", settings) == [None] * 3
    one, many = (folder.read_metrics(tmp_path / name) for name in ("one", "many"))
    assert [line["valid"] for line in one] == [line["valid"] for line in many]
    assert {line["valid"]["protocol"] for line in many} == {"sampled"}
    assert outcome(tmp_path / "one") == outcome(tmp_path / "many")


# Gradients of a fused kernel and of autograd, points of the ball and of flat space, rows that are sent early.
HALVES: dict[str, dict[str, Any]] = {
    "float16": {"engine": "auto", "optimizer": "sgd", "lr": 5.0},
    "bfloat16": {"model": "distmult", "objective": "softmax", "validate_candidates": 20},
}


def test_points_in_half_precision_are_those_of_one_process(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Trained on three ranks, evaluated there and continued in one process, without the tables in full anywhere."""
    settings = {kind: {**SETTINGS, **more, "slices": 4, "table_dtype": kind} for kind, more in HALVES.items()}
    reports = on_ranks(halves_trained, 3, small_tree, tmp_path, settings)
    for kind, one in settings.items():
        trained(small_tree, tmp_path / f"{kind} alone", {**one, "epochs": 2})
        assert reports[2][kind] == murp.load(tmp_path / f"{kind} alone").evaluate(**SAMPLED).to_dict()
        for run in (tmp_path / kind, tmp_path / f"{kind} alone"):
            continued(run, 3)
        assert outcome(tmp_path / kind) == outcome(tmp_path / f"{kind} alone")
        tables, _ = checkpoint.load(tmp_path / kind / folder.LAST)
        kinds = {name: values.dtype for name, values in tables.items()}
        assert kinds.pop("entity") == getattr(torch, kind)
        assert set(kinds.values()) == {torch.float32}


SAMPLED: dict[str, Any] = {"protocol": "sampled", "candidates": 9}


def halves_trained(graph: KnowledgeGraph, out: Path, settings: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Train in each format; what the runs come to, evaluated on all ranks."""
    from murp.training.sharded import evaluated

    found = {}
    for kind, one in settings.items():
        hastened(graph, out / kind, {**one, "epochs": 2})
        _, report = evaluated(out / kind, join(), "test", "sampled", None, "cpu", SAMPLED["candidates"], 0, None)
        found[kind] = report.to_dict()
    return found


def test_rows_of_another_type_are_not_read_as_if_they_were_of_the_runs(calm: Path, tmp_path: Path) -> None:
    """As in a run of the first version, whose checkpoints do not say their settings."""
    run = shutil.copytree(calm, tmp_path / "run")
    config = run / folder.CONFIG
    config.write_text(config.read_text().replace('dtype = "float32"', 'dtype = "float64"'))
    for name in (folder.LAST, folder.BEST):
        tables, state = checkpoint.load(run / name)
        del state["settings"]
        Saver(Ranks(), models.from_config(Config(dim=6), 40, 3)).write(run / name, tables, state)
    with pytest.raises(RunError, match=r"table \w+ is torch\.float32, the run's settings say torch\.float64"):
        continued(run, 9)


def test_it_is_the_training_of_the_engine_torch_up_to_the_order_of_additions(
    small_tree: KnowledgeGraph, calm: Path, tmp_path: Path
) -> None:
    trained(small_tree, tmp_path / "plain", {**SETTINGS, "epochs": 4})
    losses = [[record["loss"] for record in folder.read_metrics(run)] for run in (tmp_path / "plain", calm)]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    plain, sharded = (checkpoint.load(run / folder.LAST)[0] for run in (tmp_path / "plain", calm))
    assert set(plain) == set(sharded)
    for name, values in plain.items():
        torch.testing.assert_close(sharded[name], values, rtol=1e-3, atol=1e-4)


def test_gradients_of_all_slices_are_added_one_by_one_or_at_once(
    small_tree: KnowledgeGraph, calm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once as on a GPU; a CPU adds in the same order then."""
    monkeypatch.setattr(ShardedEngine, "adds_at_once", True)
    trained(small_tree, tmp_path / "run", {**SETTINGS, "slices": 4, "epochs": 4})
    assert outcome(tmp_path / "run") == outcome(calm)


def test_a_rank_that_dies_is_started_again_and_nothing_is_lost(
    small_tree: KnowledgeGraph, calm: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    on_ranks(dying, 2, small_tree, out, tmp_path / "died", restarts=1)
    assert (tmp_path / "died").exists()
    assert outcome(out) == outcome(calm)


def dying(graph: KnowledgeGraph, out: Path, died: Path) -> None:
    """Train; the second rank is killed in the third epoch, once."""

    if os.environ["RANK"] == "1" and not died.exists():
        steps, whole = [0], ShardedEngine.step

        def step(self: ShardedEngine, *given: Any) -> Any:
            steps[0] += 1
            if (out / folder.METRICS).read_text().count("\n") >= 2 and steps[0] % 3 == 2:
                died.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(self, *given)

        ShardedEngine.step = step  # type: ignore[method-assign]
    trained(graph, out, {**SETTINGS, "slices": 4, "epochs": 4})


def test_every_command_reads_what_many_ranks_have_written(calm: Path, tmp_path: Path) -> None:
    run = murp.load(calm)
    assert run.info().parameters["entity"] == [run.graph.num_entities, 6]
    assert 0 < run.evaluate("valid").mrr <= 1
    assert run.info().lines()["divided"] == "the newest checkpoint into 1 file; a batch into 4 slices"
    run.export(tmp_path / "it.npz")
    assert (tmp_path / "it.npz").exists()


def test_a_large_checkpoint_of_one_process_is_mapped(calm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = murp.load(calm)
    monkeypatch.setattr(checkpoint, "LARGE", 1)
    for name in ("rows", "verify"):
        monkeypatch.setattr(tensor_file.File, name, None)  # these read all of it, and so does this:
    monkeypatch.setattr("murp.models.Model.broken", None)
    mapped = murp.load(calm)
    assert mapped.state == read.state
    assert {name: rows.tolist() for name, rows in mapped.model.parameters.items()} == {
        name: rows.tolist() for name, rows in read.model.parameters.items()
    }


RANKED = [("mure", "standard"), ("distmult", "paper"), ("rotate", "standard"), ("hybonet", "paper")]


def test_ranks_are_those_of_one_process(small_tree: KnowledgeGraph) -> None:
    alone = [alone_ranked(small_tree, *one) for one in RANKED]
    for found in on_ranks(all_ranked, 3, small_tree):
        for many, one in zip(found, alone, strict=True):
            np.testing.assert_array_equal(many, one)


def all_ranked(graph: KnowledgeGraph) -> list[Any]:
    return [ranked(graph, *one) for one in RANKED]


def alone_ranked(graph: KnowledgeGraph, model: str, protocol: Any) -> Any:
    whole = models.from_config(Config(model=model, dim=6), graph.num_entities, graph.num_relations).initialise(1, 0.5)
    found = rank(whole, graph.valid, KnownFacts.of(graph), num_relations=graph.num_relations, protocol=protocol)
    return np.concatenate([found.tail, found.head])


def ranked(graph: KnowledgeGraph, model: str, protocol: Any) -> Any:
    from murp.distributed.ranking import Counting
    from murp.evaluation.ranks import BYTES_PER_CELL

    ranks = join()
    whole = models.from_config(Config(model=model, dim=6), graph.num_entities, graph.num_relations)
    initialise(whole, Share(graph.num_entities, ranks.rank, ranks.size), 1, 0.5)
    found = rank(
        whole, graph.valid, KnownFacts.of(graph), num_relations=graph.num_relations, protocol=protocol,
        counting=Counting(ranks, whole, memory=graph.num_entities * BYTES_PER_CELL),  # a few queries at a time
    )  # fmt: skip
    return np.concatenate([found.tail, found.head])


@pytest.mark.parametrize("model", ["murp", "rotate", "hybonet", "mixed-curvature", "rescal"])
def test_shares_have_the_initial_values_of_one_process(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murp.models.model.BLOCK", 16)
    config = Config(model=model, dim=6)
    whole = models.from_config(config, 83, 2).initialise(5, 0.1)
    for size in (1, 2, 5):
        parts = []
        for rank_ in range(size):
            part = models.from_config(config, 83, 2)
            initialise(part, Share(83, rank_, size), 5, 0.1)
            parts.append(part)
        for table in whole.tables:
            rows = [part.parameters[table.name] for part in parts]
            joined = torch.cat(rows) if table.of == "entity" else rows[-1]
            assert torch.equal(joined, whole.parameters[table.name])


def test_slices_and_shares_are_all_there_is() -> None:
    for length, slices, size in ((7, 3, 2), (2, 5, 4), (100, 4, 3), (1, 1, 1)):
        assert sum(part.stop - part.start for part in cut(length, slices)) == length
        assert [i for rank_ in range(size) for i in own_slices(slices, rank_, size)] == list(range(slices))
        assert sum(len(Share(length, rank_, size)) for rank_ in range(size)) == length


def test_bytes_on_the_wire_are_distinct_remote_rows_forth_and_back(small_tree: KnowledgeGraph) -> None:
    from scale_plan import bytes_sent  # here, since every rank imports this file

    for sent, asked, served, relations, early, _ in on_ranks(counted, 2, small_tree, {}):
        expected = bytes_sent(asked, served, relations, 1, 4 * (64 + 2), 4 * 128)
        assert expected < sent < 1.1 * expected
        assert early > 0


def test_local_negatives_do_not_travel(small_tree: KnowledgeGraph) -> None:
    """But for the one entity that the two parts of an odd number share."""
    found = [on_ranks(counted, 2, small_tree, further) for further in ({}, {"corruption": "local", "entity_parts": 2})]
    for (_, asked, *_, named), (_, asked_locally, *_, named_locally) in zip(*found, strict=True):
        assert named == named_locally <= asked_locally
        assert asked_locally - named < (asked - named) / 4


def counted(graph: KnowledgeGraph, further: dict[str, Any]) -> tuple[int, int, int, int, int, int]:
    """Bytes that this rank sent in an epoch; rows asked for, rows served, relations read, rows sent early, and rows of
    heads and tails that another rank has."""
    from murp.distributed import ShardedEngine
    from murp.distributed import engine as module
    from murp.distributed import plan as planning
    from murp.engines import Task
    from murp.training.distributed_sampler import DistributedSampler

    ranks = join()
    config = Config(model="mure", dim=64, negatives=4, batch_size=4, **further)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    share = Share(graph.num_entities, ranks.rank, ranks.size)
    initialise(model, share, 0, 1e-3)
    task = Task.of(config, model)
    task.negatives.prepare(torch.zeros(0, 3), graph.num_entities, model.num_relations)
    sampler = DistributedSampler(
        graph, ranks, ranks.size, batch_size=4, negatives=4, seed=0, device=torch.device("cpu"), steps_a_chunk=8
    )
    engine = ShardedEngine(task, ranks, ranks.size)
    planning.SPARSE = 0
    asked = served = relations = early = named = 0
    planned = module.plan

    def plan(*given: Any) -> Any:
        nonlocal asked, served, relations, early, named
        steps = planned(*given)
        for positives in given[4]:
            heads_and_tails = positives[:, [0, 2]].unique()
            named += int(((heads_and_tails < share.start) | (heads_and_tails >= share.stop)).sum())
        for step in steps:
            early += 0 if step.early is None else len(step.early.rows)
            asked += sum(count for one in step.own for to, count in enumerate(one.asked) if to != ranks.rank)
            served += sum(step.counts[i] for i in range(ranks.size) if i != ranks.rank)
            relations += sum(len(one.relations) for one in step.own)
        return steps

    module.plan = plan  # type: ignore[assignment]
    chunk = sampler.chunk(0, 0)  # for which triples are sent
    before = ranks.sent
    engine.run([chunk], [1.0])
    return ranks.sent - before, asked, served, relations, early, named


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="only Linux has this way of scheduling")
def test_a_message_does_not_interrupt_the_threads_of_a_rank() -> None:
    for allowed, policies in on_ranks(scheduled, 2):
        assert len(policies) > 1  # gloo's threads beside this one
        assert not allowed or set(policies) == {os.SCHED_BATCH}


def scheduled() -> tuple[bool, list[int]]:
    """Whether this process may choose how it is scheduled, and how its own thread and those of gloo are."""
    usual, before = os.sched_getscheduler(0), set(os.listdir("/proc/self/task"))
    ranks = join()
    ranks.agreed(True)
    new = set(os.listdir("/proc/self/task")) - before
    found = [os.sched_getscheduler(thread) for thread in (0, *map(int, new))]
    with ThreadPoolExecutor(1) as pool:  # a thread may choose for itself alone
        allowed = usual == os.SCHED_OTHER and not torch.cuda.is_available() and pool.submit(_may_choose).result()
    ranks.agreed(True)
    return allowed, found


def _may_choose() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except OSError:
        return False
    return True


def test_what_does_not_work_on_slices_is_refused_in_one_list(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"objective one-vs-all .*; model tucker .*; engine numba"):
        train(small_tree, out=tmp_path / "no", slices=2, objective="one-vs-all", model="tucker", engine="numba")
    with pytest.raises(
        ConfigError, match=r"a batch of 16 triples cannot be cut into 17 slices; choose fewer --slices, .*tables = host"
    ):
        refuse(Config(slices=17, batch_size=16, tables="host"), 2)
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(("slices", "advice"), [(0, "start fewer ranks"), (2, "choose fewer --slices")])
def test_who_has_more_slices_than_triples_is_told_what_helps(
    slices: int, advice: str, small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    """Fewer ranks change nothing if the slices were given."""
    settings = {**SETTINGS, "batch_size": 1, "slices": slices}
    first, _ = on_ranks(trained, 2, small_tree, tmp_path / "no", settings)
    assert f"a batch of 1 triples cannot be cut into 2 slices; {advice}, or choose a larger --batch-size" in str(first)
    assert not (tmp_path / "no").exists()
