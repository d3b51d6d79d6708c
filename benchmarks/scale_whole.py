"""A whole run at scale: a generated graph with a known hierarchy is read, trained for an epoch and evaluated.

Part of benchmarks/gpu_scale.py (``--read`` and ``--whole``). It takes minutes, so it prints what it is doing and stores
each part at once: a run that was cut off has ``finished`` false and the parts before.
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

import known_hierarchy
import murp
import scale_reading
from gpu import Clock
from measure import finish, result
from murp.engines import Chunk
from murp.files import write_text
from murp.graph import KnowledgeGraph
from murp.graph.sources import code_source
from murp.training.state import State

FILES = 16  # Parquet, of the graph
EVERY = 15.0  # seconds between two lines
READING = "reading.json"  # beside the graph: how long it took, for whoever trains on it later
# Plain SGD as in the paper needs hundreds of epochs: after one, at the paper's learning rate, its ranks are those of
# chance (MRR .013 among 500 candidates), and at ten times that rate hardly better (.029). These settings have .166. All
# were tried on graphs of 20,000 and 100,000 entities.
SETTINGS: dict[str, Any] = {
    "model": "murp", "dim": 40, "objective": "softmax", "optimizer": "adam", "lr": 0.03, "batch_size": 512,
    "negatives": 50, "epochs": 1, "validate_every": 0, "save_every": 3600.0, "seed": 0,
}  # fmt: skip
TOY = {"dim": 4, "batch_size": 64, "negatives": 2}  # a step in Triton's interpreter takes seconds otherwise


def say(line: str) -> None:
    """On standard error, with the time since the program began."""
    print(f"[{time.perf_counter() - BEGAN:6.1f} s] {line}", file=sys.stderr, flush=True)


BEGAN = time.perf_counter()


def peak_memory() -> int:
    """The most bytes that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Parts:
    """Seconds of each part of the work, told as they come and handed to ``keep``."""

    def __init__(self, keep: Callable[[], None] = lambda: None) -> None:
        self.seconds: dict[str, float] = {}
        self.keep = keep

    @contextlib.contextmanager
    def part(self, name: str, device: torch.device | None = None) -> Iterator[None]:
        """Time what is done in here, and say every few seconds that it is still being done."""
        over, began = threading.Event(), time.perf_counter()

        def remind() -> None:
            while not over.wait(EVERY):
                say(f"{name}: {time.perf_counter() - began:.0f} s so far")

        threading.Thread(target=remind, daemon=True).start()
        say(f"{name} …")
        try:
            yield
            if device is not None:
                finish(device)
        finally:
            over.set()
        self.seconds[name] = time.perf_counter() - began
        say(f"{name}: {self.seconds[name]:.1f} s; peak memory of the process {peak_memory() / 2**30:.1f} GiB")
        self.keep()


class Told(Clock):
    """The clock of a training, which says how far it is."""

    def start(self, state: State, done: int, steps: int, epochs: int) -> None:
        self.whole, self.said = steps * epochs, time.perf_counter()

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        super().advance(state, chunk, seconds, loss)
        if time.perf_counter() - self.said >= EVERY:
            self.said = time.perf_counter()
            each = self.total / self.steps
            say(f"step {self.steps:,} of {self.whole:,}, {each * 1e6:.1f} µs each, loss {loss:.4f}")


def read(place: Path, facts: int, entities: int) -> dict[str, Any]:
    """Generate the graph into ``place`` and code it, if it is not there; what that took, now or then.

    A process that was stopped left what it had coded so far, and this one goes on from there: then ``reading`` is the
    time since, and ``starts_of_reading`` is more than 1.
    """
    source, coded, kept = place / "facts", place / "graph", place / READING
    told: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    parts = Parts()
    if not source.exists() and not coded.exists():
        half = place / "facts.part"
        shutil.rmtree(half, ignore_errors=True)
        place.mkdir(parents=True, exist_ok=True)
        with parts.part("generating"):
            scale_reading.write(half, facts, entities, FILES, say)
            half.rename(source)
        told |= parts.seconds
        write_text(kept, json.dumps(told))
    if not coded.exists():
        told["starts_of_reading"] = told.get("starts_of_reading", 0) + 1
        write_text(kept, json.dumps(told))
        with parts.part("reading"):
            code_source(str(source), coded)
        told |= {"reading": parts.seconds["reading"], "peak_bytes": peak_memory()}
        write_text(kept, json.dumps(told))
    return told


def whole(
    place: Path,
    facts: int,
    entities: int,
    candidates: int,
    device: torch.device,
    keep: Callable[[Any], None],
    toy: bool = False,
) -> Mapping[str, Any]:
    """Open, train for an epoch, look for the hierarchy, evaluate; ``keep`` is handed what there is after each part."""
    figures: dict[str, Any] = {"finished": False, "reading": read(place, facts, entities)}
    settings = {**SETTINGS, **(TOY if toy else {}), "device": device.type}

    def told() -> Mapping[str, Any]:
        found: Mapping[str, Any] = result(
            "a whole run at scale: one epoch, then protocol sampled", settings, figures, device
        )
        return found

    parts = Parts(lambda: keep(told()))
    figures["seconds"] = parts.seconds
    with parts.part("opening"):
        graph = KnowledgeGraph.load(place / "graph")
        figures["graph"] = graph.counts()
    out, clock = place / "run", Told()
    shutil.rmtree(out, ignore_errors=True)  # of a process that was stopped
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    try:
        with parts.part("training", device):
            run = murp.train(graph, out=out, progress=clock, **settings)
            figures |= {
                "epoch_seconds": clock.total,
                "steps": clock.steps,
                "microseconds_a_step": clock.total / clock.steps * 1e6,
                "loss": run.metrics()[-1]["loss"],
                "peak_bytes_on_the_device": torch.cuda.max_memory_allocated() if device.type == "cuda" else None,
            }
        with parts.part("looking for the hierarchy", device):
            figures["hierarchy"] = known_hierarchy.relatives(
                run.model, graph, min(known_hierarchy.DRAWN, graph.num_entities)
            )
        with parts.part("evaluating", device):
            report = run.evaluate("test", "sampled", candidates=candidates)
            figures["test"] = {name: v for name, v in report.to_dict().items() if not name.startswith("by_")}
            asked = known_hierarchy.parents(report, graph)
            figures["hierarchy"] |= {
                "part_of": asked,
                "learned": known_hierarchy.verdict(figures["hierarchy"], asked),
                "learned_means": known_hierarchy.verdict.__doc__,
            }
    finally:
        shutil.rmtree(out, ignore_errors=True)
    figures |= {
        "seconds_without_reading": sum(parts.seconds.values()),
        "peak_bytes_of_the_process": peak_memory(),
        "finished": True,
    }
    return told()
