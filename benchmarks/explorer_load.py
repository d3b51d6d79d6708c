"""The explorer under load, and how long each of its answers takes.

    MURP_DATA=… python benchmarks/explorer_load.py --out results/explorer_load.json

`murp explore` runs in its own process. Random questions, no two the same, are sent to `/api/predict` over 16
connections: at 1,000 per second for a minute, then as fast as they are answered. Every kind of request is also sent one
at a time, with a graph of the size of WN18RR. Weights are random: they do not change the cost of an answer.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from asking import CONNECTIONS, ask_all
from measure import parser, result, seconds, spread, store, toy_graph
from murp import models
from murp.config import Config
from murp.graph import KnowledgeGraph
from murp.runs import folder

FASTEST = 4000  # questions held ready for each second without a pace


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--load", default="wordnet-mini", help="graph for the load")
    options.add_argument("--data", default="WN18RR", help="graph for the single answers")
    options.add_argument("--rate", type=int, default=1000, help="requests a second")
    options.add_argument("--seconds", type=float, default=60.0)
    chosen = options.parse_args(arguments)
    length, rate, repeats = (0.2, 50, 2) if chosen.quick else (chosen.seconds, chosen.rate, 31)
    small = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.load)
    large = small if chosen.quick else KnowledgeGraph.load(chosen.data)

    def alone(port: int) -> dict[str, Any]:
        found = {name: spread(times(port, ask, repeats)) for name, ask in questions(large).items()}
        return {**found, "a misspelt name": spread(times(port, misspelt(large), repeats, 404))}

    with explorer(small) as (port, process):
        load(port, small, 0.2 if chosen.quick else 3.0, None)  # warm up
        before, began = memory(process), cpu_seconds(process)
        paced = load(port, small, length, rate)
        after, ended = memory(process), cpu_seconds(process)
        unpaced = load(port, small, min(length, 20.0), None)
        answers = alone(port) if chosen.quick else {}
    if not chosen.quick:
        with explorer(large) as (port, _):
            answers = alone(port)

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


def load(port: int, graph: KnowledgeGraph, length: float, rate: int | None) -> dict[str, Any]:
    """Questions for ``length`` seconds, ``rate`` a second or as many as are answered; a sample of answers is judged."""
    asks = different(graph, random.Random(0), math.ceil(length * (rate or FASTEST)))
    requests = [f"GET {address(ask)} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode() for ask in asks]
    asked = asyncio.run(ask_all(port, requests, length, rate))
    for number, body in asked.sample.items():
        judge(asks[number], json.loads(body))
    return {**asked.figures(), "judged": len(asked.sample)}


def different(graph: KnowledgeGraph, draw: random.Random, count: int) -> list[dict[str, str]]:
    """Random questions, tails and heads alike; no two are the same unless the graph has no more."""
    ids, relations = graph.entities.ids.to_pylist(), graph.relations.ids.to_pylist()
    every = range(len(ids) * len(relations) * 2)
    found = []
    for number in draw.sample(every, min(count, len(every))):
        rest, side = divmod(number, 2)
        relation, entity = divmod(rest, len(ids))
        found.append({("head", "tail")[side]: ids[entity], "relation": relations[relation]})
    return found


def address(ask: dict[str, str]) -> str:
    return "/api/predict?" + urlencode(ask)


def judge(ask: dict[str, str], answer: Any) -> None:
    """An answer speaks of what was asked, and its ten probabilities fall."""
    assert {field: thing["id"] for field, thing in answer["query"].items()} == ask, (ask, answer)
    found = answer["predictions"]
    probabilities = [p["probability"] for p in found]
    assert [p["rank"] for p in found] == list(range(1, 11)), (ask, answer)
    assert len({p["id"] for p in found}) == 10, (ask, answer)
    assert probabilities == sorted(probabilities, reverse=True), (ask, answer)
    assert all(0 <= p <= 1 for p in probabilities), (ask, answer)


def questions(graph: KnowledgeGraph) -> dict[str, Callable[[], str]]:
    """For each path a way to ask it something new."""
    draw = random.Random(0)
    ids, relations = graph.entities.ids.to_pylist(), graph.relations.ids.to_pylist()

    def ask() -> str:
        return address({draw.choice(("head", "tail")): draw.choice(ids), "relation": draw.choice(relations)})

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


def misspelt(graph: KnowledgeGraph) -> Callable[[], str]:
    """Asks for an entity whose name has a letter too many, and so for what it may have been meant for."""
    draw = random.Random(0)

    def ask() -> str:
        name = graph.entities.name(draw.randrange(graph.num_entities))
        return "/api/entity?" + urlencode({"entity": f"{name[:2]}q{name[2:]}"})

    return ask


def times(port: int, ask: Callable[[], str], repeats: int, status: int = 200) -> list[float]:
    """Milliseconds of single questions on an open connection, after one to warm up."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    found = [1e3 * seconds(lambda: get(connection, ask(), status)) for _ in range(1 + repeats)]
    connection.close()
    return found[1:]


def get(connection: http.client.HTTPConnection, path: str, status: int = 200) -> Any:
    connection.request("GET", path)
    response = connection.getresponse()
    answer = json.load(response)
    assert response.status == status, answer
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
