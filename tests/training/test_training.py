"""Training as a whole: it learns, repeats, resumes, stops and refuses as promised.

Weights and losses of two runs are compared bit for bit where both are made by the same code on one machine. That holds
on every processor because every sum of a step is in an order that the batch alone fixes, on any number of threads (see
:mod:`murp.engines.numba_steps`); engines are compared up to rounding (laws.py).
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laws import assert_learned, assert_same_up_to_rounding

import murp
from murp.errors import ConfigError, MurpError, NotFiniteError, RunError
from murp.graph import KnowledgeGraph
from murp.runs import Run, checkpoint
from murp.training import Interrupted, sweep
from murp.training.progress import Silent
from murp.training.sampler import STEPS_A_CHUNK

QUICK: dict[str, Any] = {
    "dim": 5, "epochs": 4, "lr": 1.0, "batch_size": 4, "negatives": 4, "device": "cpu", "validate_every": 2
}  # fmt: skip


def weights(path: Path, name: str = "last") -> dict[str, torch.Tensor]:
    return checkpoint.load(path / f"{name}.safetensors")[0]


def assert_same_bits(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


LEARNING: dict[str, Any] = {"dim": 10, "epochs": 150, "lr": 5.0, "batch_size": 16, "validate_every": 0}


@pytest.mark.parametrize("model", ["murp", "mure"])
def test_a_model_learns_a_tree(model: str, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    assert_learned(murp.train(small_tree, model=model, device="cpu", out=tmp_path / "run", **LEARNING))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_same_seed_same_bits(dtype: str, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        murp.train(small_tree, out=tmp_path / name, **{**QUICK, "seed": seed, "dtype": dtype})
    assert_same_bits(weights(tmp_path / "a"), weights(tmp_path / "b"))
    assert_same_bits(weights(tmp_path / "a", "best"), weights(tmp_path / "b", "best"))
    assert not torch.equal(weights(tmp_path / "a")["entity"], weights(tmp_path / "c")["entity"])
    assert weights(tmp_path / "a")["entity"].dtype == getattr(torch, dtype)


class StopAt(Silent):
    """Sends the signal of Ctrl-C after so many chunks, and remembers what training looked like then."""

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def advance(self, state: Any, chunk: Any, seconds: float, loss: float) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("stops", [[2], [5], [1, 1, 1], [4, 2]])
def test_resuming_gives_the_bits_of_a_run_that_never_stopped(
    stops: list[int], small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped within an epoch or between two, once or again and again."""
    monkeypatch.setitem(STEPS_A_CHUNK, "cpu", 20)  # two chunks an epoch
    graph, settings = small_tree, {**QUICK, "epochs": 3, "validate_every": 1}
    murp.train(graph, out=tmp_path / "whole", **settings)
    with pytest.raises(Interrupted, match="--resume"):
        murp.train(graph, out=tmp_path / "parts", progress=StopAt(stops[0]), **settings)
    for chunks in stops[1:]:
        with pytest.raises(Interrupted):
            murp.resume(tmp_path / "parts", progress=StopAt(chunks))
    murp.resume(tmp_path / "parts")
    assert_same_bits(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert_same_bits(weights(tmp_path / "whole", "best"), weights(tmp_path / "parts", "best"))

    def figures(path: Path) -> list[Any]:
        records = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
        return [(m["epoch"], m["loss"], m["valid"]["mrr"]) for m in records]

    assert figures(tmp_path / "whole") == figures(tmp_path / "parts")


class DieAt(Silent):
    """Ends training without a word after so many chunks, as a power cut does: only what lies on the disk is left."""

    def __init__(self, chunks: int) -> None:
        self.left = chunks

    def advance(self, state: Any, chunk: Any, seconds: float, loss: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise MemoryError("the lights are out")


@pytest.mark.parametrize(("chunks", "kept"), [(2, (0, 1)), (4, (0, 3)), (5, (1, 0)), (6, (1, 1))])
def test_a_long_epoch_is_saved_on_the_way(
    chunks: int, kept: tuple[int, int], small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has been trained is saved when it is due, not only when an epoch ends, and goes on with the same bits."""
    monkeypatch.setitem(STEPS_A_CHUNK, "cpu", 12)  # four chunks an epoch
    settings = {**QUICK, "epochs": 2, "save_every": 0.0}
    murp.train(small_tree, out=tmp_path / "whole", **settings)
    with pytest.raises(MemoryError):
        murp.train(small_tree, out=tmp_path / "parts", progress=DieAt(chunks), **settings)
    state = checkpoint.verify(tmp_path / "parts" / "last.safetensors")
    assert (state["epoch"], state["chunk"]) == kept
    murp.resume(tmp_path / "parts")
    assert_same_bits(weights(tmp_path / "whole"), weights(tmp_path / "parts"))
    assert [m["loss"] for m in murp.load(tmp_path / "whole").metrics()] == [
        m["loss"] for m in murp.load(tmp_path / "parts").metrics()
    ]


def test_metrics_written_after_the_last_checkpoint_are_dropped_on_resuming(
    tmp_path: Path, small_tree: KnowledgeGraph
) -> None:
    """As after a crash: metrics.jsonl may be ahead of the checkpoint, and its last line cut short."""
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    whole = (run.path / "metrics.jsonl").read_text()
    tables, state = checkpoint.load(run.path / "last.safetensors")
    murp.train(small_tree, out=tmp_path / "short", **{**QUICK, "epochs": 2})
    tables, state = checkpoint.load(tmp_path / "short" / "last.safetensors")
    checkpoint.save(run.path / "last.safetensors", tables, state)
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 5, "lo')
    murp.resume(run.path)
    again = [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]
    assert [(m["epoch"], m["loss"]) for m in again] == [
        (m["epoch"], m["loss"]) for m in map(json.loads, whole.splitlines())
    ]


def test_resuming_can_extend_a_finished_run(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    murp.train(small_tree, out=tmp_path / "long", **{**QUICK, "epochs": 6})
    murp.train(small_tree, out=tmp_path / "run", **QUICK)
    assert murp.resume(tmp_path / "run").config.epochs == 4  # nothing left to do
    murp.resume(tmp_path / "run", epochs=6)
    assert_same_bits(weights(tmp_path / "long"), weights(tmp_path / "run"))
    assert murp.load(tmp_path / "run").config.epochs == 6
    with pytest.raises(ConfigError, match="epochs must be at least 1"):
        murp.resume(tmp_path / "run", epochs=0)


def test_extending_is_refused_where_the_schedule_depends_on_the_length(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    murp.train(small_tree, out=tmp_path / "run", **QUICK, lr_schedule="cosine")
    with pytest.raises(ConfigError, match="cosine"):
        murp.resume(tmp_path / "run", epochs=6)


def test_config_toml_repeats_the_run_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data included: a file given by a relative path and split by another seed than the default."""
    facts = [f"a{i}\tr{i % 2}\ta{(3 * i + j) % 20}\n" for i in range(20) for j in range(4)]
    (tmp_path / "facts.tsv").write_text("".join(facts))
    monkeypatch.chdir(tmp_path)
    by_name = murp.train("facts.tsv", out="by_name", split_seed=7, **QUICK)
    loaded = murp.train(murp.KnowledgeGraph.load("facts.tsv", seed=7), out="loaded", **QUICK)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for name, run in (("by_name", by_name), ("loaded", loaded)):
        values = murp.Config.read(tmp_path / name / "config.toml")
        again = murp.train(values.pop("data"), out=f"again_{name}", **values)
        assert_same_bits(run.model.parameters, again.model.parameters)
        assert np.array_equal(run.graph.test, again.graph.test)


def test_a_run_folder_is_complete_and_holds_no_pickle(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    names = {p.relative_to(run.path).as_posix() for p in run.path.rglob("*") if p.is_file()}
    assert names == {
        "config.toml", "environment.json", "metrics.jsonl", "last.safetensors", "best.safetensors",
        "last.previous.safetensors", "best.previous.safetensors", "lock",
        "graph/graph.json", *(f"graph/{part}.parquet" for part in ("entities", "relations", "train", "valid", "test")),
    }  # fmt: skip
    loaded = murp.load(run.path)
    assert loaded.graph.entities == small_tree.entities
    assert np.array_equal(loaded.graph.train, small_tree.train)
    assert_same_bits(loaded.model.parameters, weights(run.path, "best"))
    assert loaded.state["epoch"] == loaded.state["best_epoch"]


def test_validation_keeps_the_best_weights_and_patience_stops(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = {**QUICK, "epochs": 200, "validate_every": 1, "patience": 2}
    run = murp.train(small_tree, out=tmp_path / "run", **settings)
    records = run.metrics()
    curve = [m["valid"]["mrr"] for m in records]
    assert len(curve) < 200
    best = int(np.argmax(curve))
    assert len(curve) == best + 1 + 2
    assert run.state["best_epoch"] == best + 1
    assert run.evaluate("valid").mrr == pytest.approx(curve[best], abs=1e-12)
    assert all(m["valid"]["protocol"] == "standard" and m["valid"]["split"] == "valid" for m in records)
    assert len(murp.resume(run.path).metrics()) == len(curve)  # it stopped for good


def test_a_run_that_stopped_early_goes_on_with_more_patience(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    settings = {**QUICK, "epochs": 200, "validate_every": 1, "patience": 2}
    run = murp.train(small_tree, out=tmp_path / "a run", **settings)
    epoch = run.metrics()[-1]["epoch"]
    files = {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}
    for changes in ({"epochs": 800}, {"patience": 1}, {"epochs": 800, "patience": 2}):
        with pytest.raises(RunError, match=f"stopped early, in epoch {epoch}: the last 2 validations") as raised:
            murp.resume(run.path, **changes)
        asked = f"--resume {shlex.quote(str(run.path))} {'--epochs 800 ' * ('epochs' in changes)}--patience 0`"
        assert asked in str(raised.value)
        assert files == {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}
    assert murp.resume(run.path, epochs=200, patience=2).config == run.config  # as it is: nothing left to do
    assert murp.resume(run.path, epochs=epoch + 3, patience=0).metrics()[-1]["epoch"] == epoch + 3
    assert murp.load(run.path).config.patience == 0


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_checkpoint(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    with pytest.raises(NotFiniteError, match=r"epoch \d+ .*[Tt]ry a learning rate of") as caught:
        murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "model": "mure", "lr": 1e25, "epochs": 20})
    assert any(name in str(caught.value) for name in ("entity", "translation", "stretch", "bias"))
    run = murp.load(tmp_path / "run", checkpoint="last")
    assert all(values.isfinite().all() for values in run.model.parameters.values())


def test_tensorboard_files_on_request(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="needs tensorboard: pip install 'murp[tensorboard]'")
    murp.train(small_tree, out=tmp_path / "run", tensorboard=True, **QUICK)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [e.step for e in events.Scalars("loss")] == [1, 2, 3, 4]
    assert [e.step for e in events.Scalars("valid (standard)/mrr")] == [2, 4]


def test_an_existing_run_folder_is_refused_and_untouched(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    murp.train(small_tree, out=tmp_path / "run", **QUICK)
    before = {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}
    with pytest.raises(RunError, match="exists already"):
        murp.train(small_tree, out=tmp_path / "run", reuse=False, **QUICK)
    assert before == {p: p.read_bytes() for p in (tmp_path / "run").rglob("*") if p.is_file()}


def test_a_damaged_checkpoint_is_refused_and_the_other_one_offered(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    path = run.path / "best.safetensors"
    (run.path / "best.previous.safetensors").unlink(missing_ok=True)
    whole = path.read_bytes()
    flipped = bytearray(whole)
    flipped[-3] ^= 1
    for damaged in (whole[: len(whole) // 2], bytes(flipped), b"", b"\xff" * 64):
        path.write_bytes(damaged)
        with pytest.raises(RunError, match=r"best\.safetensors.*--checkpoint last"):
            murp.load(run.path)
    assert isinstance(murp.load(run.path, checkpoint="last"), Run)


def test_a_checkpoint_of_another_shape_is_refused(
    small_tree: KnowledgeGraph, make_tree: Callable[..., KnowledgeGraph], tmp_path: Path
) -> None:
    a = murp.train(small_tree, out=tmp_path / "a", **QUICK)
    b = murp.train(small_tree, out=tmp_path / "b", **{**QUICK, "dim": 6})
    c = murp.train(make_tree(4), out=tmp_path / "c", **QUICK)
    for other, why in ((b, "trained with dim = 6"), (c, "does not fit its run")):
        (a.path / "best.safetensors").write_bytes((other.path / "best.safetensors").read_bytes())
        with pytest.raises(RunError, match=why):
            murp.load(a.path)


def test_a_graph_without_valid_says_what_to_do(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    from dataclasses import replace

    graph = replace(small_tree, valid=small_tree.valid[:0])
    with pytest.raises(MurpError, match="validate_every"):
        murp.train(graph, out=tmp_path / "run", **QUICK)
    assert not (tmp_path / "run").exists()
    run = murp.train(graph, out=tmp_path / "run", **{**QUICK, "validate_every": 0})
    assert run.state["epoch"] == 4


def test_what_cannot_work_is_refused_before_anything_is_written(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="tensorboard is not installed"):
        murp.train(small_tree, out=tmp_path / "run", tensorboard=True, **QUICK)
    monkeypatch.undo()
    with pytest.raises(ConfigError, match="engine triton runs on cuda"):
        murp.train(small_tree, out=tmp_path / "run", engine="triton", **QUICK)
    with pytest.raises(MurpError, match="smaller --dim"):
        murp.train(small_tree, out=tmp_path / "run", **{**QUICK, "dim": 10**12})
    with pytest.raises(ConfigError, match="seed must be at most"):
        murp.train(small_tree, out=tmp_path / "run", seed=2**64, **QUICK)
    assert list(tmp_path.iterdir()) == []


def test_resuming_to_fewer_epochs_is_refused_and_changes_nothing(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    before = (run.path / "config.toml").read_text()
    with pytest.raises(ConfigError, match=r"would be fewer\. Choose a number above 4, or train a new run\."):
        murp.resume(run.path, epochs=2)
    assert (run.path / "config.toml").read_text() == before


def test_damaged_metrics_are_refused_but_for_a_last_line_cut_short(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    run = murp.train(small_tree, out=tmp_path / "run", **QUICK)
    metrics = run.path / "metrics.jsonl"
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([lines[0], "garbage\n", *lines[1:]]))
    with pytest.raises(RunError, match="line 2"):
        murp.resume(run.path)
    metrics.unlink()
    metrics.mkdir()
    with pytest.raises(RunError, match=r"metrics\.jsonl cannot be read"):
        murp.resume(run.path)


@pytest.mark.parametrize("engine", ["torch", "numba"])
def test_engines_train_to_the_same_figures(engine: str, small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Same batches, same negatives: in float64 the runs of all CPU engines stay together up to rounding."""
    settings = {**QUICK, "dtype": "float64"}
    a = murp.train(small_tree, out=tmp_path / "a", **settings)
    b = murp.train(small_tree, out=tmp_path / "b", engine=engine, **settings)
    assert_same_up_to_rounding(a, b)
    assert json.loads((b.path / "environment.json").read_text())["engine"] == engine


@pytest.mark.gpu
def test_training_on_the_gpu_gives_what_the_cpu_gives(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """Other random numbers, same quality: over some seeds the means lie as near as the seeds' own spread says.

    The bound is five standard errors of the difference. About .012 is the deviation of a run's MRR, so that a step
    which costs a few hundredths of it is noticed.
    """
    scores = {}
    for device in ("cpu", "cuda"):
        settings = [{**LEARNING, "device": device, "seed": seed} for seed in range(8)]
        runs = [run for run in sweep(small_tree, settings, out=tmp_path / device) if isinstance(run, Run)]
        assert len(runs) == len(settings)
        for run in runs:
            assert_learned(run)
        scores[device] = [run.evaluate("train").mrr for run in runs]
    errors = [np.std(found, ddof=1) / len(found) ** 0.5 for found in scores.values()]
    assert abs(np.mean(scores["cuda"]) - np.mean(scores["cpu"])) <= 5 * np.hypot(*errors)


def test_validation_among_candidates_is_that_evaluation(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """The training is the same; its validations, and so the best epoch, are those of ``murp evaluate``."""
    settings = {**QUICK, "epochs": 4, "validate_every": 1, "seed": 6}
    run = murp.train(small_tree, out=tmp_path / "run", validate_candidates=9, **settings)
    plain = murp.train(small_tree, out=tmp_path / "plain", **settings)
    assert_same_bits(weights(tmp_path / "run"), weights(tmp_path / "plain"))
    lines = run.metrics()
    assert [(line["valid"]["protocol"], line["valid"]["candidates"], line["valid"]["seed"]) for line in lines] == [
        ("sampled", 9, 6)
    ] * 4
    found = murp.evaluate(tmp_path / "run", "valid", "sampled", candidates=9, seed=6, checkpoint="last", device="cpu")
    assert lines[-1]["valid"] == json.loads(json.dumps(found.to_dict()))
    best = max(lines, key=lambda line: line["valid"]["mrr"])
    assert (run.state["best_mrr"], run.state["best_epoch"]) == (best["valid"]["mrr"], best["epoch"])
    assert run.state["best_mrr"] > plain.state["best_mrr"]
    assert "protocol sampled: 9 candidates a question" in run.info().lines()["best"]


def test_another_number_of_validation_candidates_does_not_continue_a_run(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    """The best MRR so far would be compared with one of another protocol."""
    path = tmp_path / "run"
    murp.train(small_tree, out=path, validate_candidates=9, **QUICK)
    toml = path / "config.toml"
    text = toml.read_text()
    toml.write_text(text.replace("validate_candidates = 9", "validate_candidates = 0"))
    with pytest.raises(RunError, match="validate_candidates = 0, but the weights in"):
        murp.resume(path, epochs=6)
    without = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("validate_candidates"))
    murp.train(small_tree, out=tmp_path / "before", **QUICK)
    (tmp_path / "before" / "config.toml").write_text(without)
    assert murp.resume(tmp_path / "before", epochs=6).state["epoch"] == 6  # a file of before the setting
