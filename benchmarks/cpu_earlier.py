"""Filtered evaluation of a test set with this code and with an earlier commit.

    MURP_DATA=… python benchmarks/cpu_earlier.py --commit 535de4f --out results/cpu_earlier.json

Both run in turns in their own processes, since one process cannot load two versions. The earlier code is checked out
into a temporary folder. The result is the ratio of the wall times, and of the processor times, which other busy
processes disturb less.
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

from measure import parser, result, spread, store
from murp.provenance import ROOT, git

# Only what both versions have: this is run with the earlier code, too.
WORK = """
import json, os, sys, time
os.environ["THP_MEM_ALLOC_ENABLE"] = "0"
from murp import models
from murp.evaluation import KnownFacts, evaluate
from murp.graph import KnowledgeGraph

data, dim, repeats, *names = sys.argv[1:]
dim, repeats = int(dim), int(repeats)
graph = KnowledgeGraph.load(data)
known = KnownFacts.of(graph)
found = {}
for name in names:
    model = models.MODELS[name](graph.num_entities, 2 * graph.num_relations, dim).initialise(0)
    model.parameters["entity"].mul_(50)
    found[name] = []
    for _ in range(repeats + 1):
        clock, processor = time.perf_counter(), time.process_time()
        evaluate(model, graph, "test", known=known)
        found[name].append((time.perf_counter() - clock, time.process_time() - processor))
print(json.dumps({name: times[1:] for name, times in found.items()}))
"""


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--commit", default="535de4f", help="the earlier code")
    options.add_argument("--data", default="WN18RR")
    options.add_argument("--dim", type=int, default=40)
    chosen = options.parse_args(arguments)
    rounds, repeats = (1, 1) if chosen.quick else (5, 5)
    names = ["murp"] if chosen.quick else ["murp", "mure"]  # each is compiled once more, for the earlier folder
    commit = "HEAD" if chosen.quick else chosen.commit
    times: dict[str, dict[str, list[list[float]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        earlier = Path(folder) / "earlier"
        data = _toy(Path(folder) / "toy.tsv") if chosen.quick else chosen.data
        if git(ROOT, "worktree", "add", "--detach", str(earlier), commit) is None:
            sys.exit(f"git cannot check out {commit} of {ROOT}. Name a commit of this repository's history.")
        try:
            for _ in range(rounds):
                for name, tree in (("earlier", earlier), ("now", ROOT)):
                    for model, found in _measured(tree, data, chosen.dim, repeats, names).items():
                        times.setdefault(model, {}).setdefault(name, []).extend(found)
        finally:
            git(ROOT, "worktree", "remove", "--force", str(earlier))
    figures = {model: _compared(found) for model, found in times.items()}
    settings = {
        "seed": 0,
        "data": Path(data).name,
        "dim": chosen.dim,
        "earlier": commit,
        "rounds": rounds,
        "repeats": repeats,
    }
    what = "filtered evaluation of a test set, both directions, float32, by this code and by an earlier commit's"
    store(result(what, settings, figures), chosen.out)


def _toy(file: Path) -> str:
    """A file of facts that any version reads: a tree, and who stands next to whom in it."""
    rows = (f"e{i}\tchild\te{i // 2}\ne{i}\tnext\te{i + 1}\n" for i in range(1, 100))
    file.write_text("".join(rows))
    return str(file)


def _measured(tree: Path, data: str, dim: int, repeats: int, names: list[str]) -> dict[str, list[list[float]]]:
    """Seconds on the clock and of the processors, by model and repeat, of the code of a checkout."""
    variables = {**os.environ, "PYTHONPATH": str(tree / "src")}
    words = [sys.executable, "-c", WORK, data, str(dim), str(repeats), *names]
    done = subprocess.run(words, cwd=tree, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, list[list[float]]] = json.loads(done.stdout)
    return found


def _compared(found: dict[str, list[list[float]]]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for place, kind in enumerate(("seconds", "processor_seconds")):
        by_code = {name: spread([pair[place] for pair in pairs]) for name, pairs in found.items()}
        against = by_code["now"]["median"] / by_code["earlier"]["median"]
        least = by_code["now"]["least"] / by_code["earlier"]["least"]
        figures[kind] = {**by_code, "now_over_earlier": against, "least_over_least": least}
    return figures


if __name__ == "__main__":
    main()
