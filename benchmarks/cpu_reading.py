"""Reading ten million triples from one tab-separated file, and a million from other formats: seconds and memory.

    python benchmarks/cpu_reading.py --out results/cpu_reading.json

Makes random triples (a million entities, a hundred relations) in a temporary folder and loads them in new processes:
reading, numbering and splitting; the same with writing the cache; reading the cache. A million of them are also read in
each of several formats without the cache, with processor time beside wall time. The Turtle is plain and cut at its
blanks. TriG is parsed by pyoxigraph, as other Turtle is; pyoxigraph is also measured alone, parsing the file and
writing it as lines, which is the part that murp uses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from measure import parser, result, spread, store

ENTITIES, RELATIONS = 1_000_000, 100
MILLION = 1_000_000
LINES = {
    ".tsv": "{}\t{}\t{}\n",
    ".csv": "{},{},{}\n",
    ".jsonl": '{{"head": "{}", "relation": "{}", "tail": "{}"}}\n',
    ".nt": "<http://example.org/{}> <http://example.org/{}> <http://example.org/{}> .\n",
    ".ttl": "e:{} e:{} e:{} .\n",
    ".trig": "e:{} e:{} e:{} .\n",
}
PREFIX = "@prefix e: <http://example.org/> .\n"
BEGINNINGS = {".csv": "head,relation,tail\n", ".ttl": PREFIX, ".trig": PREFIX}

# Imports nothing but what loading needs, since they count for the peak of resident memory.
LOAD = """
import json, resource, sys, time
from murp.graph import KnowledgeGraph
began, busy = time.perf_counter(), time.process_time()
graph = KnowledgeGraph.load(sys.argv[1])
seconds, busy = time.perf_counter() - began, time.process_time() - busy
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
counts = {split: len(graph.split(split)) for split in ("train", "valid", "test")}
counts |= {"entities": graph.num_entities, "relations": graph.num_relations}
print(json.dumps({"seconds": seconds, "processor_seconds": busy, "peak_bytes": peak, "graph": counts}))
"""

PARSE = """
import itertools, json, sys, time
import pyoxigraph as ox
began, busy = time.perf_counter(), time.process_time()
parser = ox.parse(path=sys.argv[1])
while ox.serialize(itertools.islice(parser, 50_000), format=ox.RdfFormat.N_TRIPLES):
    pass
print(json.dumps({"seconds": time.perf_counter() - began, "processor_seconds": time.process_time() - busy}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--triples", type=int, default=10_000_000)
    chosen = options.parse_args(arguments)
    count, repeats = (2000, 1) if chosen.quick else (chosen.triples, 3)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "triples.tsv"
        write_random_triples(file, count)
        size = file.stat().st_size
        loads = {
            "parsed": [fresh(file, cache="off") for _ in range(repeats)],
            "parsed and kept": [fresh(file, cache="on")],
            "from the cache": [fresh(file, cache="on") for _ in range(repeats)],
        }
        few = min(count, MILLION)
        formats = {name: in_format(Path(folder), name, few, repeats) for name in LINES}
    figures: dict[str, Any] = {"graph": loads["parsed"][0]["graph"]}
    figures |= {name: summary(measured) for name, measured in loads.items()}
    figures["formats"] = formats
    settings = {"triples": count, "file_bytes": size, "triples_of_formats": few}
    store(result("loading one tab-separated file, seconds", settings, figures), chosen.out)


def in_format(folder: Path, name: str, count: int, repeats: int) -> dict[str, Any]:
    """The same triples in one format."""
    file = folder / f"triples{name}"
    write_random_triples(file, count, LINES[name], BEGINNINGS.get(name, ""))
    found = summary([fresh(file, cache="off") for _ in range(repeats)]) | {"file_bytes": file.stat().st_size}
    if name == ".trig":
        alone = [fresh(file, cache="off", code=PARSE)["seconds"] for _ in range(repeats)]
        found["seconds_of_pyoxigraph_alone"] = spread(alone)
    file.unlink()
    return found


def summary(loads: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "seconds": spread([load["seconds"] for load in loads]),
        "processor_seconds": spread([load["processor_seconds"] for load in loads]),
        "peak_bytes": max(load["peak_bytes"] for load in loads),
    }


def fresh(file: Path, *, cache: str, code: str = LOAD) -> dict[str, Any]:
    """What a process of its own measures."""
    command = [sys.executable, "-c", code, str(file)]
    environment = {**os.environ, "MURP_CACHE": cache, "XDG_CACHE_HOME": str(file.parent / "cache")}
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    values: dict[str, Any] = json.loads(told)
    return values


def write_random_triples(file: Path, count: int, line: str = "{}\t{}\t{}\n", beginning: str = "") -> None:
    """``count`` rows such as ``entity_000417 <tab> relation_07 <tab> entity_993120``, uniform, seed 0."""
    random = np.random.default_rng(0)
    entities = min(ENTITIES, max(10, count // 10))
    with file.open("w") as out:
        out.write(beginning)
        for begin in range(0, count, 100_000):
            rows = min(100_000, count - begin)
            heads, tails = random.integers(entities, size=(2, rows)).tolist()
            relations = random.integers(RELATIONS, size=rows).tolist()
            out.writelines(
                line.format(f"entity_{h:06}", f"relation_{r:02}", f"entity_{t:06}")
                for h, r, t in zip(heads, relations, tails, strict=True)
            )


if __name__ == "__main__":
    main()
