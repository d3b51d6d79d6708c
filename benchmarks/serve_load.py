"""``murp serve`` under load, while its run is replaced.

    python benchmarks/serve_load.py --out results/serve_load.json

`murp serve` runs in its own process and gets random questions, no two the same, over 16 connections: one question per
request at 1,000 requests per second for a minute; then the same for half as long while the run folder is replaced again
and again, and no request may fail; then batches of a hundred questions as fast as they are answered. Weights are
random: they do not change the cost of an answer.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from asking import CONNECTIONS, ask_all
from explorer_load import FASTEST, cpu_seconds, different, judge, memory
from measure import parser, result, store, toy_graph
from murp import models
from murp.client import Client
from murp.config import Config
from murp.graph import KnowledgeGraph
from murp.runs import folder
from murp.shapes import Health

BATCH = 100  # questions of a request, where they come in batches
EVERY = 5.0  # seconds between two replacements of the run


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini", help="graph of the run")
    options.add_argument("--rate", type=int, default=1000, help="requests a second, one question each")
    options.add_argument("--seconds", type=float, default=60.0)
    chosen = options.parse_args(arguments)
    length, rate = (0.5, 50) if chosen.quick else (chosen.seconds, chosen.rate)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    with tempfile.TemporaryDirectory() as scratch:
        runs = [made(Path(scratch) / name, graph, seed) for seed, name in enumerate(("run", "other"))]
        with serving(runs[0]) as (port, process):
            load(port, graph, 0.2 if chosen.quick else 3.0, None)  # warm up
            before, began = memory(process), cpu_seconds(process)
            paced = load(port, graph, length, rate)
            after, ended = memory(process), cpu_seconds(process)
            with replaced(runs, 0.1 if chosen.quick else EVERY, most=1 if chosen.quick else 1000) as times:
                under = load(port, graph, length / 2, rate)
            health = after_a_reload(Client(f"http://127.0.0.1:{port}"))
            batches = load(port, graph, min(length, 20.0), None, BATCH)
            last = memory(process)
    figures = {
        "paced": {
            **paced,
            "asked_per_second": rate,
            "memory_mib": {"before": before, "after": after},
            "cpu_ms_a_request": 1e3 * (ended - began) / paced["requests"],
        },
        "replaced": {**under, "replacements": times[0], "reloads": health.reloads, "memory_mib": {"after": last}},
        "batches": {**batches, "questions_per_second": BATCH * batches["per_second"]},
    }
    settings = {"data": graph.name, "dim": 40, "connections": CONNECTIONS, "seconds": length, "batch": BATCH}
    store(result("murp serve's /predict under load, and while the run is replaced", settings, figures), chosen.out)
    assert not any(figures[part]["errors"] for part in figures), "a request failed"
    assert health.reloads, "no run was replaced"


def made(path: Path, graph: KnowledgeGraph, seed: int) -> Path:
    """A run folder with random weights."""
    config = Config(dim=40, seed=seed)
    model = models.from_config(config, graph.num_entities, graph.num_relations)
    model.initialise(seed)
    model.parameters["entity"].mul_(50)
    folder.create(path, config, graph, model, {"epoch": seed, "best_mrr": None, "best_epoch": None}, "torch")
    return path


@contextmanager
def serving(run: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A server on a run: its port and process."""
    command = [sys.executable, "-m", "murp", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = urlsplit(process.stdout.readline().split()[1]).port
        assert port is not None, "it did not start"
        yield port, process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def replaced(runs: Sequence[Path], every: float, most: int) -> Iterator[list[int]]:
    """Put another run into the place of the first every few seconds, ``most`` times; how often that was done."""
    place, other = runs
    over, times = threading.Event(), [0]

    def replace() -> None:
        while times[0] < most and not over.wait(every):
            shutil.copytree(place, kept := other.with_name("kept"))
            os.rename(place, gone := other.with_name("gone"))
            os.rename(other, place)
            shutil.rmtree(gone)
            os.rename(kept, other)
            times[0] += 1

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()


def after_a_reload(client: Client) -> Health:
    """What is served once a run has been replaced; the server looks for that once a second."""
    end = time.monotonic() + 60
    while not (found := client.health()).reloads and time.monotonic() < end:
        time.sleep(0.1)
    return found


def load(port: int, graph: KnowledgeGraph, length: float, rate: int | None, batch: int = 1) -> dict[str, Any]:
    """Requests of ``batch`` questions for ``length`` seconds, ``rate`` a second or as many as are answered.

    A sample of answers is judged.
    """
    asks = different(graph, random.Random(0), math.ceil(length * (rate or FASTEST)))
    groups = [asks[start : start + batch] for start in range(0, len(asks) - batch + 1, batch)] or [asks]
    asked = asyncio.run(ask_all(port, [posted(port, group) for group in groups], length, rate))
    for number, body in asked.sample.items():
        for ask, answer in zip(groups[number], json.loads(body)["answers"], strict=True):
            query = {name: answer[name] for name in ("relation", "head", "tail") if answer[name] is not None}
            judge(ask, {"query": query, "predictions": answer["predictions"]})
    return {**asked.figures(), "judged": len(asked.sample)}


def posted(port: int, questions: Sequence[dict[str, str]]) -> bytes:
    """The bytes of a request."""
    body = json.dumps(questions).encode()
    head = f"POST /predict HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


if __name__ == "__main__":
    main()
