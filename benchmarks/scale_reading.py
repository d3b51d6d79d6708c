"""Reading a graph larger than memory: time and peak memory of numbering, splitting and writing a hundred million facts.

    python benchmarks/scale_reading.py --out results/scale_reading.json

Generates a graph with a known hierarchy (seeded): entity i > 0 has the parent ⌊(i - 1) / 8⌋, a fact of ``part_of``; the
other facts are of 99 relations between an entity and one of its relatives, which is found by going up some levels and
down again at random. It is written as Parquet in ``--files`` files, or as one .tsv with ``--text``, and coded in a
fresh process by `murp data convert --format graph`, then opened in another. Peak memory is measured with and without
memory that is mapped from files (Linux reports both). ``--facts 10000000 --entities 1000000`` is a tenth of it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from measure import parser, result, store

BRANCHES, RELATIONS, SEED = 8, 100, 0
BLOCK = 1 << 20

CODE = """
import json, sys, threading, time
from pathlib import Path
from murp.graph.sources import code_source
from murp.graph.storage import read_saved
highest = [0, 0]
def private():
    # What is mapped from files can be dropped by the system at any moment; what is not cannot.
    for line in open("/proc/self/status"):
        if line.startswith(("RssAnon", "VmHWM")):
            place = int(line.startswith("VmHWM"))
            highest[place] = max(highest[place], int(line.split()[1]) * 1024)
def watch():
    while True:
        private()
        time.sleep(0.05)
threading.Thread(target=watch, daemon=True).start()
began, busy = time.perf_counter(), time.process_time()
graph = code_source(sys.argv[1], Path(sys.argv[2])) if sys.argv[3] == "code" else read_saved(Path(sys.argv[2]))
seconds, busy = time.perf_counter() - began, time.process_time() - busy
private()
figures = {"seconds": seconds, "processor_seconds": busy}
figures |= {"peak_bytes": highest[1], "peak_private_bytes": highest[0]}
print(json.dumps(figures | {"graph": graph.counts()}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--facts", type=int, default=100_000_000)
    options.add_argument("--entities", type=int, default=10_000_000)
    options.add_argument("--files", type=int, default=16, help="Parquet files")
    options.add_argument("--text", action="store_true", help="one tab-separated file instead")
    options.add_argument("--folder", help="where to put the graph; default: a temporary folder")
    chosen = options.parse_args(arguments)
    facts, entities = (20_000, 3_000) if chosen.quick else (chosen.facts, chosen.entities)
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        source = Path(folder) / ("facts.tsv" if chosen.text else "facts")
        write(source, facts, entities, 1 if chosen.text else chosen.files)
        files = [source] if chosen.text else list(source.iterdir())
        size = sum(file.stat().st_size for file in files)
        out = Path(folder) / "graph"
        coded, opened = measured(source, out, "code"), measured(source, out, "open")
        kept = sum(file.stat().st_size for file in out.iterdir())
    settings = {"facts": facts, "entities": entities, "relations": RELATIONS, "seed": SEED, "branches": BRANCHES}
    settings |= {"form": "tsv" if chosen.text else "parquet", "files": len(files), "file_bytes": size}
    figures: dict[str, Any] = {"graph": coded.pop("graph"), "coded_bytes": kept, "coding": coded}
    figures["facts_a_second"] = facts / coded["seconds"]
    figures["opening"] = {name: value for name, value in opened.items() if name != "graph"}
    store(result("reading past memory, seconds and bytes", settings, figures), chosen.out)


def generated(facts: int, entities: int, seed: int = SEED) -> Iterator[pa.Table]:
    """The facts, a block at a time, as names: first the tree, then random facts between relatives."""
    draw = np.random.default_rng(seed)
    names = np.array([f"r{i:02d}" for i in range(RELATIONS)])
    for start in range(0, facts, BLOCK):
        number = np.arange(start, min(start + BLOCK, facts))
        heads = np.where(number < entities - 1, number + 1, draw.integers(1, entities, size=len(number)))
        tails, relations = (heads - 1) // BRANCHES, np.zeros(len(number), np.int64)
        others = number >= entities - 1
        relations[others] = 1 + draw.integers(RELATIONS - 1, size=int(others.sum()))
        levels = 1 + (relations + draw.integers(2, size=len(number))) % 4
        relative = heads
        for level in range(1, 5):
            relative = np.where(level <= levels, (relative - 1) // BRANCHES, relative)
            relative = np.maximum(relative, 0)
        for level in range(1, 5):
            child = relative * BRANCHES + 1 + draw.integers(BRANCHES, size=len(number))
            relative = np.where((level <= levels) & (child < entities), child, relative)
        tails = np.where(others, relative, tails)
        columns = [_names(heads), pa.array(names[relations]), _names(tails)]
        yield pa.table(columns, names=["head", "relation", "tail"])


def _names(numbers: np.ndarray[Any, np.dtype[np.int64]]) -> pa.Array:
    """Q-numbers, as Wikidata has them."""
    digits = pa.array(numbers).cast(pa.string())
    return pa.compute.binary_join_element_wise(pa.scalar("Q"), digits, pa.scalar(""))


def write(path: Path, facts: int, entities: int, files: int, say: Callable[[str], None] = lambda line: None) -> None:
    """The facts as Parquet files in a folder, or as one tab-separated file; ``say`` hears of every new file."""
    if path.suffix == ".tsv":
        with path.open("wb") as stream:
            form = pacsv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
            for table in generated(facts, entities):
                pacsv.write_csv(table, stream, form)
        return
    path.mkdir()
    each = -(-facts // files)
    writers: dict[int, pq.ParquetWriter] = {}
    done = 0
    for table in generated(facts, entities):
        for begin in range(0, len(table), max(1, each)):
            part = table.slice(begin, each)
            number = min(files - 1, (done + begin) // each)
            if number not in writers:
                say(f"{done + begin:,} of {facts:,} facts generated")
                writers[number] = pq.ParquetWriter(path / f"part-{number:05d}.parquet", table.schema)
            writers[number].write_table(part)
        done += len(table)
    for writer in writers.values():
        writer.close()


def measured(source: Path, out: Path, what: str) -> dict[str, Any]:
    """What a fresh process needed."""
    environment = {**os.environ, "MURP_CACHE": "off"}
    command = [sys.executable, "-W", "ignore", "-c", CODE, str(source), str(out), what]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
