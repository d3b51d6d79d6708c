"""How long it takes, and how much memory, to load ten million triples from one tab-separated file.

    python benchmarks/read_triples.py [--triples N] [--out results/read_triples.json]

Makes random triples (a million entities, a hundred relations) in a temporary folder and loads them in a fresh
process: reading, numbering and splitting into train, valid and test. The bar for ten million on two cores is
30 s and 4 GiB.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from murp.files import write_text
from murp.graph import KnowledgeGraph

ENTITIES, RELATIONS = 1_000_000, 100


def main() -> None:
    parser = argparse.ArgumentParser(description="Time and memory of loading a large file of triples.")
    parser.add_argument("--triples", type=int, default=10_000_000)
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--load", type=Path, help=argparse.SUPPRESS)  # what the fresh process is told
    arguments = parser.parse_args()
    if arguments.load:
        print(json.dumps(measure(arguments.load)))
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "triples.tsv"
        write_random_triples(file, arguments.triples)
        size = file.stat().st_size
        command = [sys.executable, __file__, "--load", str(file)]
        figures = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    result = {
        "what": "KnowledgeGraph.load of one tab-separated file: read, number, split",
        "triples": arguments.triples,
        "file_mib": round(size / 2**20, 1),
        **figures,
        "machine": machine(),
        "version": version("murp"),
    }
    print(json.dumps(result, indent=2))
    if arguments.out:
        write_text(arguments.out, json.dumps(result, indent=2) + "\n")


def write_random_triples(file: Path, count: int) -> None:
    """``count`` rows such as ``entity_000417 <tab> relation_07 <tab> entity_993120``, uniform, seed 0."""
    random = np.random.default_rng(0)
    with file.open("w") as out:
        for begin in range(0, count, 100_000):
            rows = min(100_000, count - begin)
            heads, tails = random.integers(ENTITIES, size=(2, rows)).tolist()
            relations = random.integers(RELATIONS, size=rows).tolist()
            out.writelines(
                f"entity_{h:06}\trelation_{r:02}\tentity_{t:06}\n"
                for h, r, t in zip(heads, relations, tails, strict=True)
            )


def measure(file: Path) -> dict[str, Any]:
    """Seconds, peak resident memory of this process (imports included), and what came out."""
    begin = time.perf_counter()
    graph = KnowledgeGraph.load(file)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "seconds": round(seconds, 2),
        "peak_rss_gib": round(peak / 2**30, 2),
        "entities": graph.num_entities,
        "relations": graph.num_relations,
        "train": len(graph.train),
        "valid": len(graph.valid),
        "test": len(graph.test),
    }


def machine() -> dict[str, Any]:
    """What was measured on, in words that do not name the machine."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = models[0].partition(":")[2].strip() if models else cpu
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "pyarrow": version("pyarrow"),
    }


if __name__ == "__main__":
    main()
