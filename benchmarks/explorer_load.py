"""The explorer under load, and how long each of its answers takes.

    MURP_DATA=… python benchmarks/explorer_load.py --out results/explorer_load.json

`murp explore` runs as a process of its own. `/api/predict` is asked random questions over 16 connections: at 1,000
a second for a minute, then as fast as they are answered. Every answer is asked of a graph of the size of WN18RR as
well, one at a time. Weights are random: what they are does not change what an answer costs.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from measure import parser, result, seconds, spread, store, toy_graph
from murp import models
from murp.config import Config
from murp.graph import KnowledgeGraph
from murp.runs import folder

CONNECTIONS = 16


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--load", default="wordnet-mini", help="graph for the load")
    options.add_argument("--data", default="WN18RR", help="graph for the single answers")
    options.add_argument("--rate", type=int, default=1000, help="requests a second")
    options.add_argument("--seconds", type=float, default=60.0)
    chosen = options.parse_args(arguments)
    length, rate, repeats = (0.5, 50, 2) if chosen.quick else (chosen.seconds, chosen.rate, 31)
    small = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.load)
    large = small if chosen.quick else KnowledgeGraph.load(chosen.data)

    with explorer(small) as (port, process):
        asyncio.run(load(port, small, 0.5 if chosen.quick else 3.0, None))  # warm up
        before, began = memory(process), cpu_seconds(process)
        paced = asyncio.run(load(port, small, length, rate))
        after, ended = memory(process), cpu_seconds(process)
        unpaced = asyncio.run(load(port, small, min(length, 20.0), None))
    with explorer(large) as (port, _):
        answers = {name: spread(times(port, ask, repeats)) for name, ask in questions(large).items()}

    figures = {
        "paced": {
            **paced,
            "asked_per_second": rate,
            "memory_mib": {"before": before, "after": after},
            "cpu_ms_a_request": 1e3 * (ended - began) / paced["requests"],
        },
        "unpaced": unpaced,
        "answer_ms": answers,
    }
    settings = {"load": small.name, "answers": large.name, "dim": 40, "connections": CONNECTIONS, "seconds": length}
    store(result("the explorer's /api/predict under load; each answer alone", settings, figures), chosen.out)


@contextmanager
def explorer(graph: KnowledgeGraph) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """A server on a run of ``graph`` with random weights: its port and process."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Path(scratch) / "run"
        config = Config(dim=40)
        model = models.from_config(config, graph.num_entities, graph.num_relations)
        model.initialise(0)
        model.parameters["entity"].mul_(50)
        folder.create(run, config, graph, model, {"epoch": 0, "best_mrr": None, "best_epoch": None}, "torch")
        command = [sys.executable, "-m", "murp", "explore", str(run), "--port", "0"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            port = urlsplit(process.stdout.readline().split()[1]).port
            assert port is not None
            get(http.client.HTTPConnection("127.0.0.1", port), "/api/metrics")  # until these are done it is not at rest
            yield port, process
        finally:
            process.terminate()
            process.wait()


async def load(port: int, graph: KnowledgeGraph, length: float, rate: int | None) -> dict[str, Any]:
    """Random questions for ``length`` seconds, ``rate`` a second or as many as are answered."""
    draw = random.Random(0)
    ask = predictions(graph, draw)
    requests = [f"GET {ask()} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() for _ in range(20_000)]
    waits: list[float] = []
    errors = 0
    began = time.perf_counter()

    async def connection(number: int) -> None:
        nonlocal errors
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = number
        while True:
            due = began + turn / rate if rate else time.perf_counter()
            if due >= began + length:
                break
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            writer.write(requests[turn % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(size)
            waits.append(time.perf_counter() - due)
            errors += not head.startswith(b"HTTP/1.1 200 ")
            turn += CONNECTIONS
        writer.close()

    await asyncio.gather(*(connection(number) for number in range(CONNECTIONS)))
    elapsed = time.perf_counter() - began
    waits.sort()
    return {
        "requests": len(waits),
        "errors": errors,
        "per_second": len(waits) / elapsed,
        "wait_ms": {name: 1e3 * waits[int(share * len(waits))] for name, share in (("median", 0.5), ("p99", 0.99))},
    }


def predictions(graph: KnowledgeGraph, draw: random.Random) -> Callable[[], str]:
    """Addresses of random questions, tails and heads alike."""
    ids, relations = graph.entities.ids.to_pylist(), graph.relations.ids.to_pylist()

    def ask() -> str:
        side = draw.choice(("head", "tail"))
        return "/api/predict?" + urlencode({side: draw.choice(ids), "relation": draw.choice(relations)})

    return ask


def questions(graph: KnowledgeGraph) -> dict[str, Callable[[], str]]:
    """For each path a way to ask it something new."""
    draw = random.Random(0)
    ids, relations = graph.entities.ids.to_pylist(), graph.relations.ids.to_pylist()
    ask = predictions(graph, draw)

    def about(path: str, field: str, **more: str) -> Callable[[], str]:
        return lambda: f"{path}?" + urlencode({field: draw.choice(ids), **more})

    return {
        "/api/search": lambda: "/api/search?" + urlencode({"q": draw.choice(ids)[:3]}),
        "/api/predict": ask,
        "/api/neighbours": about("/api/neighbours", "entity"),
        "/api/project": about("/api/project", "centre"),
        "/api/project, all points": about("/api/project", "centre", points="true"),
        "/api/metrics": lambda: "/api/metrics",
        "/api/entity": about("/api/entity", "entity"),
        "/api/question": lambda: ask().replace("/api/predict", "/api/question") + "&projection=distances",
        "/api/edges": lambda: "/api/edges?" + urlencode({"relation": draw.choice(relations)}),
    }


def times(port: int, ask: Callable[[], str], repeats: int) -> list[float]:
    """Milliseconds of single questions on an open connection, after one to warm up."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    found = [1e3 * seconds(lambda: get(connection, ask())) for _ in range(1 + repeats)]
    connection.close()
    return found[1:]


def get(connection: http.client.HTTPConnection, path: str) -> Any:
    connection.request("GET", path)
    response = connection.getresponse()
    answer = json.load(response)
    assert response.status == 200, answer
    return answer


def memory(process: subprocess.Popen[str]) -> float:
    """MiB that a process holds (Linux)."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def cpu_seconds(process: subprocess.Popen[str]) -> float:
    """Seconds of computing that a process has used (Linux): unlike its speed, the same on a busy machine."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
