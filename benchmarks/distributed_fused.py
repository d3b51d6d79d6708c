"""A step with slices by the fused kernel of Numba compared with autograd: the work of a rank, and losses.

    python benchmarks/distributed_fused.py --out results/distributed_fused_cpu.json

The setting of benchmarks/distributed.py in which every triple has its own negatives, with large and small batches. The
cases (1 and 4 ranks, 4 slices) run in turns, once with each engine. Work is the processor time of a rank.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import measure
from distributed import CASES, FEW_STEPS, QUICK, SETTINGS, STEPS, started

BATCHES = (16384, 1024)
RANKS = ("1", "4")
ENGINES = ("torch", "numba")
Turns = dict[str, list[list[dict[str, Any]]]]


def summary(turns: dict[int, dict[str, Turns]]) -> dict[str, Any]:
    """Work by batch, ranks and engine, and how the engines compare."""
    figures: dict[str, Any] = {}
    for batch, by_ranks in turns.items():
        for ranks, by_engine in by_ranks.items():
            work = {
                engine: measure.spread([max(one["work"] for one in turn) / turn[0]["steps"] for turn in found])
                for engine, found in by_engine.items()
            }
            losses = [by_engine[engine][0][0]["losses"] for engine in ENGINES]
            figures[f"batch {batch}, ranks {ranks}"] = {
                "work_a_step_of_a_rank": work,
                "fused, in times of autograd": measure.ratio(work, "numba", "torch"),
                "greatest relative difference of a loss": max(
                    abs(a - b) / abs(b) for a, b in zip(*losses, strict=True)
                ),
            }
        figures[f"batch {batch}, losses and MRR of 1 and 4 ranks bit for bit"] = all(
            by_ranks[RANKS[0]][engine][0][0][name] == by_ranks[RANKS[1]][engine][0][0][name]
            for engine in ENGINES
            for name in ("losses", "mrr")
        )
    return figures


def main(arguments: list[str] | None = None) -> int:
    """Run every case in turns."""
    parser = measure.parser(__doc__)
    parser.add_argument("--data", default="WN18RR")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args(arguments)
    settings, steps, batches = SETTINGS["own"], STEPS, BATCHES
    if options.quick:
        options.data, options.turns, batches = "toy", 1, (QUICK["batch_size"],)
        settings, steps = {**settings, **QUICK}, FEW_STEPS
    turns: dict[int, dict[str, Turns]] = {
        batch: {ranks: {engine: [] for engine in ENGINES} for ranks in RANKS} for batch in batches
    }
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.turns):
            for batch in batches:
                for ranks in RANKS:
                    for engine in ENGINES:
                        given = {**settings, "batch_size": batch, "engine": engine}
                        turns[batch][ranks][engine].append(started(ranks, options, given, steps, Path(folder)))
    cases = {ranks: CASES[ranks] for ranks in RANKS}
    about = {
        **settings,
        "seed": 0,
        "batch_size": batches,
        "engine": ENGINES,
        "data": options.data,
        "turns": options.turns,
    }
    about["cases (ranks, slices)"] = cases
    measure.store(measure.result("fused gradients of slices on CPUs", about, summary(turns)), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
