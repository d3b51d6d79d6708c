"""The cost of watching a training: processor seconds with and without snapshots and the server that shows them.

    python benchmarks/explorer_watched.py --out results/explorer_watched.json

Both train the same run, bit for bit, in turns. ``share`` is the share of the training time that the recorder spent on
snapshots. ``memory_mb`` is the memory of the process after a quarter and at the end of the last watched training, while
the newest picture is requested after every tenth epoch.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from measure import parser, result, spread, store, toy_graph
from murp.explorer.watched import Watched
from murp.graph import KnowledgeGraph
from murp.training import train
from murp.training.progress import Silent

EPOCHS = 500
REPEATS = 3


class Looked(Silent):
    """Looks at the training after every tenth epoch, as a page in a browser does, and notes the process's memory."""

    watched: Watched | None = None

    def __init__(self) -> None:
        self.memory: list[float] = []

    def epoch(self, record: dict[str, Any]) -> None:
        self.memory.append(_memory_mb())
        if self.watched is not None and record["epoch"] % 10 == 0:
            address = f"http://127.0.0.1:{self.watched.port}/api/training"
            with urlopen(address) as answer:
                newest = json.load(answer)["snapshots"][-1]
            urlopen(f"{address}/picture?epoch={newest}").read()


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini")
    options.add_argument("--epochs", type=int, default=EPOCHS)
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    epochs, repeats = (4, 1) if chosen.quick else (chosen.epochs, REPEATS)
    found: dict[str, list[float]] = {"plain": [], "watched": []}
    shares, memory = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(repeats):
            for name in found:
                looked = Looked()
                shown: Silent = looked
                if name == "watched":
                    shown = looked.watched = Watched(looked, "127.0.0.1", 0)
                began, clock = time.process_time(), time.monotonic()
                folder = Path(scratch) / f"{name}{turn}"
                train(graph, out=folder, dim=40, epochs=epochs, validate_every=50, progress=shown)
                found[name].append(time.process_time() - began)
                if looked.watched is not None:
                    shares.append(looked.watched.spent / (time.monotonic() - clock))
                    memory = [looked.memory[len(looked.memory) // 4], looked.memory[-1]]
    seconds = {name: spread(values) for name, values in found.items()}
    figures = {
        "processor_seconds": seconds,
        "watched_over_plain": min(found["watched"]) / min(found["plain"]),
        "share": spread(shares),
        "memory_mb": memory,
    }
    settings = {"data": graph.name, "entities": graph.num_entities, "model": "murp", "dim": 40, "epochs": epochs}
    store(result("what it costs a training to be watched", settings, figures), chosen.out)


def _memory_mb() -> float:
    """What the process holds now, where the system tells; elsewhere the most it has held."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 2**20
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 2**20 if sys.platform == "darwin" else most / 2**10


if __name__ == "__main__":
    main()
