"""Train the rows of docs/field.md, one JSON file for each row and seed: every model on every dataset, under one
protocol.

    MURP_DATA=… python benchmarks/field.py --plan                                  # what there is, what is stored
    MURP_DATA=… python benchmarks/field.py --only 'wn18rr-*-d40' --device cuda --jobs 8
    MURP_DATA=… python benchmarks/field.py --only '*-best-*' --seeds 3 --device cuda      # alone: times that count
    MURP_DATA=… python benchmarks/field.py --only '*-d40' --step-times 5 --device cpu     # what a training takes here
    MURP_DATA=… python benchmarks/field.py --only '*-d200' --step-times 5 --device cuda --jobs 8       # and on a GPU

The rows are in field.toml. Runs that are stored with the same settings are not trained again. The checkpoint is the one
with the best MRR on valid; the test set is evaluated once, under both protocols. On a GPU, a run of one epoch comes
first, so that compiling is not counted; its time is stored separately. Each training has its own process, ``--jobs`` at
a time. On a GPU they start and compile at the same time but train in turns: several processes that share a GPU take
longer than one after another. With NVIDIA's multi-process service this is not so: ``--share`` also trains at the same
time, and each result stores how many there were. If a training is stopped by Ctrl-C, ``--timeout`` or ``--budget``, the
same command continues it, as long as its folder under ``--runs`` exists.

With ``--step-times`` nothing is trained to its end: a few seconds of steps say what a step takes, and with that the
whole training without validation. The steps of the first chunk compile and do not count. On a GPU a run of one epoch
compiles first, the steps are measured in turns, and those of the first seconds do not count: k-vs-all captures a graph
for each length of its labels, and meets the lengths one after another.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

import murp
from field_rows import Row, chosen, rows, same
from measure import parser, result, spread, store, toy_graph
from murp.engines import Chunk
from murp.files import parse_json
from murp.graph import KnowledgeGraph
from murp.graph.shape import shape
from murp.recipes import decide
from murp.runs import Run, folder
from murp.tables import Number, table
from murp.training.progress import Silent
from murp.training.state import State

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "field"
TOY = {"epochs": 2, "validate_every": 1, "batch_size": 64, "dim": 4}
WAIT = 20.0  # seconds that a training has to write its checkpoint when it is stopped
EARLY = 5  # times the seconds of steps that are measured: how long a GPU trains before
START = 30.0  # seconds of a process before its training: imports, data, compiling


class Clock(Silent):
    """Seconds of training alone."""

    def __init__(self) -> None:
        self.spent = 0.0

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.spent += seconds


class EnoughError(Exception):
    """So many seconds of steps were measured, and the training may end."""


class Stopwatch(Silent):
    """Seconds of a step, chunk by chunk, without the first chunk and what ends in the first ``early`` seconds; ends a
    training after ``enough`` seconds of the others."""

    def __init__(self, enough: float, early: float = 0.0) -> None:
        self.enough, self.early, self.spent, self.counted, self.first = enough, early, 0.0, 0, True
        self.seconds_a_step: list[float] = []

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        super().start(state, done, steps, epochs)
        self.steps = steps * epochs

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.early -= seconds
        if not self.first and self.early <= 0:
            self.seconds_a_step.append(seconds / chunk.steps)
            self.spent += seconds
            self.counted += chunk.steps
        self.first = False
        if self.spent >= self.enough and len(self.seconds_a_step) > 1:
            raise EnoughError


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    found = chosen(options.only, rows())
    if not found:
        print(f"no row is called {' or '.join(options.only)}: see --plan.", file=sys.stderr)
        return 1
    if options.one is not None:
        train(found[0], options.one, options)
        return 0
    if options.plan:
        print(plan(found, options))
        return 0
    waiting = [(row, seed) for seed in range(options.seeds) for row in found if not is_stored(row, seed, options)]
    if options.quick:
        for row, seed in waiting:
            train(row, seed, options)
        return 0
    return train_all(waiting, options)


def _options() -> argparse.ArgumentParser:
    options = parser(__doc__)
    options.set_defaults(out=RESULTS)
    options.add_argument("--only", nargs="+", default=[], metavar="PATTERN", help="rows by name: 'wn18rr-*-d40'")
    options.add_argument("--seeds", type=int, default=1, metavar="N", help="train with seeds 0 … N-1; default: 1")
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--jobs", type=int, default=1, metavar="N", help="trainings side by side; default: 1")
    options.add_argument("--share", action="store_true", help="train on one GPU at the same time; wants MPS")
    options.add_argument("--timeout", type=float, default=600.0, metavar="S", help="of one training; default: 600 s")
    options.add_argument("--budget", type=float, metavar="S", help="stop what still trains after so many seconds")
    options.add_argument("--runs", type=Path, default=ROOT / "runs" / "field", help="where run folders stand meanwhile")
    options.add_argument("--plan", action="store_true", help="print the rows and what they should take; train nothing")
    options.add_argument(
        "--step-times", type=float, metavar="S", help="train S seconds only, and store what steps take"
    )
    options.add_argument("--one", type=int, help=argparse.SUPPRESS)  # a process of ours: this seed of the one row
    return options


def file_of(row: Row, seed: int, options: argparse.Namespace) -> Path:
    """Where a result is stored; what steps take stands apart, on a processor and on a GPU."""
    out: Path = options.out
    if options.step_times:
        return out / ("times-gpu" if options.device == "cuda" else "times") / f"{row.name}.json"
    return out / f"{row.name}-seed{seed}.json"


def is_stored(row: Row, seed: int, options: argparse.Namespace) -> bool:
    """Whether the row was trained with the settings that it has now."""
    file = file_of(row, seed, options)
    return file.exists() and (options.quick or same(parse_json(file.read_text())["settings"], row.config(seed)))


def plan(found: Sequence[Row], options: argparse.Namespace) -> str:
    """A line for each row: the seconds it should take on an H200, the seeds that are stored, its command."""
    lines = [
        [row.name, Number(row.seconds(), 1), sum(is_stored(row, seed, options) for seed in range(99)), row.command()]
        for row in found
    ]
    total = sum(row.seconds() for row in found)
    return (
        table(["row", "seconds", "stored", "command"], lines, right=(1, 2))
        + f"\n{len(found)} rows, {total:,.0f} s of training a seed on an H200, and about {START:.0f} s each to begin."
    )


def train_all(waiting: Sequence[tuple[Row, int]], options: argparse.Namespace) -> int:
    """Each training in a process of its own, the longest first; how many failed or were stopped."""
    end = time.monotonic() + options.budget if options.budget else float("inf")
    ordered = sorted(waiting, key=lambda one: (one[1], -one[0].seconds()))

    def run(one: tuple[Row, int]) -> bool:
        row, seed = one
        left = min(options.timeout, end - time.monotonic())
        # What cannot be trained in the time that is left would only be begun.
        done = left > START + (options.step_times or row.seconds()) and _process(row, seed, options, left)
        print(f"{'done' if done else 'NOT DONE'}: {row.name}, seed {seed}", file=sys.stderr, flush=True)
        return done

    with ThreadPoolExecutor(options.jobs) as pool:
        done = sum(pool.map(run, ordered))
    print(f"{done} of {len(ordered)} trained; the others go on with the same command.", file=sys.stderr)
    return int(done < len(ordered))


def _process(row: Row, seed: int, options: argparse.Namespace, seconds: float) -> bool:
    words = [sys.executable, __file__, "--only", row.name, "--one", str(seed), "--device", options.device]
    words += ["--out", str(options.out), "--runs", str(options.runs), "--jobs", str(options.jobs)]
    words += ["--step-times", str(options.step_times)] if options.step_times else []
    words += ["--share"] if options.share else []
    threads = str(max(1, (os.cpu_count() or 1) // options.jobs))
    log = options.runs / f"{row.name}-seed{seed}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as stream:
        process = subprocess.Popen(
            words, stdout=stream, stderr=stream, env={**os.environ, "OMP_NUM_THREADS": threads}, cwd=ROOT
        )
        try:
            return process.wait(seconds) == 0
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)  # upon which it writes a checkpoint
        try:
            process.wait(WAIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return False


def train(row: Row, seed: int, options: argparse.Namespace) -> None:
    """Train a row with one seed, or go on with it, and store what came."""
    graph = toy_graph() if options.quick else KnowledgeGraph.load(row.data)
    config = row.config(seed)
    if options.quick:
        config = config.replace(**TOY)
    config = config.replace(data=graph.source or graph.name, device=options.device, compile_after=0.0)
    device = torch.device(options.device)
    figures = step_times(graph, config, options) if options.step_times else whole_run(row, graph, config, options)
    about = "seconds of a step" if options.step_times else "checkpoint chosen by standard MRR on valid"
    what = f"{row.name}: {config.model} d={config.dim} on {graph.name}; {about}"
    settings = {**config.to_dict(), "data": graph.name, "data_dir": ""}
    store(
        result(what, settings, {"row": row.name, "recipe": row.recipe, **figures}, device), file_of(row, seed, options)
    )


def whole_run(row: Row, graph: KnowledgeGraph, config: murp.Config, options: argparse.Namespace) -> dict[str, Any]:
    """A training to its end and its evaluation."""
    path = options.runs / f"{row.name}-seed{config.seed}"
    if path.exists() and folder.read_config(path) != config:
        shutil.rmtree(path)  # of a row that has changed since
    resumed, clock = path.exists(), Clock()
    warm_up = _warm_up(graph, config, path) if options.device == "cuda" and not resumed else None
    with _turn(options):
        began = time.perf_counter()
        if resumed:
            run = murp.resume(path, progress=clock)
        else:
            run = murp.train(graph, out=path, progress=clock, **_settings(config))
        wall = time.perf_counter() - began
    seconds = run.metrics()[-1]["seconds"]
    figures = {
        **_reached(run),
        "seconds": seconds,
        # Of a run that was stopped in between nobody knows what part of its seconds was validation.
        "training_seconds": None if resumed else clock.spent,
        "validation_seconds": None if resumed else seconds - clock.spent,
        "wall_seconds": wall,
        "warm_up_seconds": warm_up,
        "resumed": resumed,
        "side_by_side": options.jobs if options.share or options.device == "cpu" else 1,
        "auto": decide(shape(graph)).recipe,  # what recipe auto would take here
    }
    shutil.rmtree(path)
    return figures


@contextlib.contextmanager
def _turn(options: argparse.Namespace) -> Iterator[None]:
    """The GPU for one training, while the other processes wait or compile; on a processor nobody waits."""
    if options.device != "cuda" or options.share:
        yield
        return
    options.runs.mkdir(parents=True, exist_ok=True)
    with (options.runs / "turn").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _reached(run: Run) -> dict[str, Any]:
    def overall(split: Any, protocol: Any = "standard") -> dict[str, Any]:
        report = run.evaluate(split, protocol)
        return {"protocol": protocol, "split": split, **report.overall.to_dict()}

    records = run.metrics()
    return {
        "parameters": sum(values.numel() for values in run.model.parameters.values()),
        "selected_epoch": run.state["epoch"],
        "epochs": records[-1]["epoch"],
        "valid": {"standard": overall("valid")},
        "test": {protocol: overall("test", protocol) for protocol in ("standard", "paper")},
        "valid_mrr_standard": {record["epoch"]: record["valid"]["mrr"] for record in records if "valid" in record},
        "loss": [record["loss"] for record in records][:: max(1, len(records) // 20)],
    }


def _warm_up(graph: KnowledgeGraph, config: murp.Config, path: Path) -> float:
    """Seconds of a run of one epoch, which compiles what the other needs."""
    began = time.perf_counter()
    scratch = path.with_name(f"{path.name}-warm-up")
    shutil.rmtree(scratch, ignore_errors=True)
    murp.train(graph, out=scratch, progress=Silent(), **{**_settings(config), "epochs": 1})
    shutil.rmtree(scratch)
    return time.perf_counter() - began


def step_times(graph: KnowledgeGraph, config: murp.Config, options: argparse.Namespace) -> dict[str, Any]:
    """What a step takes, and with that the whole training without validation."""
    path = options.runs / f"times-{os.getpid()}"
    watch = Stopwatch(options.step_times, early=EARLY * options.step_times if options.device == "cuda" else 0.0)
    few = {"validate_every": 0, "patience": 0, "lr_schedule": "constant"}
    if options.device == "cuda":
        _warm_up(graph, config.replace(**few), path)
    with _turn(options), contextlib.suppress(EnoughError):
        murp.train(graph, out=path, progress=watch, **{**_settings(config), **few})
    shutil.rmtree(path)
    return {
        "seconds_a_step": spread(watch.seconds_a_step),
        "steps": watch.steps,
        # By the sum, since a GPU may still work on a chunk when the clock of the next one starts.
        "expected_seconds": watch.spent / watch.counted * watch.steps,
        "side_by_side": options.jobs if options.share or options.device == "cpu" else 1,
    }


def _settings(config: murp.Config) -> dict[str, Any]:
    settings = config.to_dict()
    del settings["data"]
    return settings


if __name__ == "__main__":
    sys.exit(main())
