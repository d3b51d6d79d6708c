"""``murp tune`` against a grid of ``murp sweep`` in the same wall time, by MRR on valid.

    MURP_DATA=… python benchmarks/tuning.py --data NELL-995-h100 --seconds 600 --out results/tuning_nell.json

One run with the default settings measures the time of a run. ``murp.sweep`` trains the largest of the grids below that
fits into ``--seconds``, each run to its end, and its time is measured. Then ``murp.tune`` starts from the defaults and
gets the same time. Both train the same model with the same number of epochs, on the same machine, one after the other.
Neither uses test.
"""

from __future__ import annotations

import importlib
import math
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import murp  # before torch, as in the command line: see murp/__init__.py

# isort: split
import torch

from measure import parser, result, store, toy_graph
from murp.graph import KnowledgeGraph
from murp.training.progress import Silent

SHARE = 0.97  # of the grid's time that the search has: the rest is for its report
# What a user would try first, the smallest grid first. Each has the defaults among its runs.
GRIDS: list[dict[str, list[float]]] = [
    {"lr": [20, 50]},
    {"lr": [10, 50], "negatives": [50, 100]},
    {"lr": [10, 20, 50], "negatives": [50, 100]},
    {"lr": [10, 20, 50], "negatives": [25, 50, 100]},
    {"lr": [5, 10, 20, 50], "negatives": [25, 50, 100]},
    {"lr": [5, 10, 20, 50], "negatives": [25, 50, 100], "batch_size": [128, 256]},
    {"lr": [5, 10, 20, 50, 100], "negatives": [25, 50, 100, 200], "batch_size": [128, 256]},
    {"lr": [2, 5, 10, 20, 50, 100], "negatives": [25, 50, 100, 200], "batch_size": [64, 128, 256, 512]},
]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini")
    options.add_argument("--seconds", type=float, default=600.0, help="for each of the two")
    options.add_argument("--device", default="auto", choices=("auto", "cpu", "cuda"))
    options.add_argument("--workers", type=int, default=1, help="of murp tune")
    options.add_argument("--dim", type=int, default=40)
    options.add_argument("--epochs", type=int, default=45)
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    settings: dict[str, Any] = {
        "dim": chosen.dim,
        "epochs": chosen.epochs,
        "seed": chosen.seed,
        "device": chosen.device,
    }
    if chosen.quick:
        settings |= {"dim": 2, "epochs": 9, "device": "cpu"}
    # The grid validates as often as it does by default; tune as often as its rungs ask for.
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch)
        importlib.import_module("optuna")  # as murp is imported already, for both
        importlib.import_module("murp.plots.tuning")
        murp.train(graph, out=home / "warm", progress=Silent(), **{**settings, "epochs": 1})  # compile
        began = time.monotonic()
        first = murp.train(graph, out=home / "first", progress=Silent(), **settings)
        one = time.monotonic() - began
        grid = GRIDS[0] if chosen.quick else largest(chosen.seconds / one)
        began = time.monotonic()
        swept = murp.sweep(graph, out=home / "grid", progress=Silent(), **{**settings, **grid})
        took = time.monotonic() - began
        began = time.monotonic()
        most: dict[str, Any] = {"trials": 3} if chosen.quick else {"trials": 100_000, "timeout": SHARE * took}
        tuned = murp.tune(graph, storage=home / "t.db", workers=chosen.workers, **most, **settings)
        tuning = time.monotonic() - began
    figures = {
        "seconds": {"one_run": one, "grid": took, "tune": tuning},
        "default": {"mrr": first.state["best_mrr"]},
        "grid": {
            "values": grid,
            "runs": len(swept),
            "mrr": swept[0].mrr,
            "settings": {name: swept[0].settings[name] for name in grid},
            "all": [{"mrr": trial.mrr, **{n: trial.settings[n] for n in grid}} for trial in swept],
        },
        "tune": {
            "trials": {state: sum(t.state == state for t in tuned) for state in sorted({t.state for t in tuned})},
            "mrr": tuned.best_mrr,
            "settings": tuned.best_trial.settings,
            "all": [{"mrr": t.mrr, "state": t.state, "epoch": t.epoch, **t.settings} for t in tuned],
        },
        "tune_less_grid": tuned.best_mrr - (swept[0].mrr or 0.0),
    }
    about = {**settings, "data": graph.name, "workers": chosen.workers, "split": "valid", "protocol": "standard"}
    device = torch.device("cuda" if first.model.device.type == "cuda" else "cpu")
    store(result("murp tune against murp sweep in the same wall time", about, figures, device), chosen.out)


def largest(runs: float) -> dict[str, list[float]]:
    """The largest grid of so many runs at most; the smallest where none is small enough."""
    sizes = [math.prod(len(values) for values in grid.values()) for grid in GRIDS]
    return GRIDS[max((place for place, size in enumerate(sizes) if size <= runs), default=0)]


if __name__ == "__main__":
    main()
