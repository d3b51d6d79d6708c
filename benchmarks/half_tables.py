"""MRR of trainings whose entities' points are stored in float32, float16 and bfloat16 (``table_dtype``).

    python benchmarks/half_tables.py --out results/half_tables.json
    python benchmarks/half_tables.py --data WN18RR --epochs 500 --device cuda --out results/half_tables_wn18rr.json

All trainings use the same engine: torch on the CPU, and triton on a GPU, where the seeds train side by side. MRR on
valid and test, protocol standard, by seed, of the weights after the last epoch: nothing is chosen by either split. For
each case also the bytes of a checkpoint.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Sequence
from typing import Any

import torch

from measure import parser, result, store, toy_graph
from murp.graph import KnowledgeGraph
from murp.runs import Run, folder
from murp.training.grid import sweep
from murp.training.progress import Silent

FORMATS = ("float32", "float16", "bfloat16")
ENGINES = {"cpu": "torch", "cuda": "triton"}
SPLITS: tuple[Any, ...] = ("valid", "test")


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini")
    options.add_argument("--models", nargs="+", default=["murp", "mure"])
    options.add_argument("--dim", type=int, default=40)
    options.add_argument("--epochs", type=int, default=60)
    options.add_argument("--lr", type=float, default=50.0)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--device", choices=tuple(ENGINES), default="cpu")
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    seeds, epochs = (1, 2) if chosen.quick else (chosen.seeds, chosen.epochs)
    common = {"dim": chosen.dim, "lr": chosen.lr, "epochs": epochs}
    told = {**common, "data": graph.name, "engine": ENGINES[chosen.device], "protocol": "standard"}
    how = {"device": chosen.device, "engine": told["engine"], "validate_every": 0}
    figures: dict[str, Any] = {}
    for model, form in itertools.product(chosen.models, FORMATS):
        case = f"{model}, {form}"
        figures[case] = trained(graph, {"model": model, "table_dtype": form, **common, **how}, seeds)
        print(f"{case}: {figures[case]}", flush=True)
    what = "MRR by the format in which the entities' points are stored, by seed"
    store(result(what, told, figures, torch.device(chosen.device)), chosen.out)


def trained(graph: KnowledgeGraph, settings: dict[str, Any], seeds: int) -> dict[str, Any]:
    """One run for each seed, side by side where the engine can: MRR by split, and the bytes of a checkpoint."""
    with tempfile.TemporaryDirectory() as home:
        runs: list[Run] = []
        for one in sweep(graph, [{**settings, "seed": seed} for seed in range(seeds)], out=home, progress=Silent()):
            if not isinstance(one, Run):
                raise one
            runs.append(one)
        found: dict[str, Any] = {split: [float(run.evaluate(split).mrr) for run in runs] for split in SPLITS}
        return {**found, "checkpoint_bytes": (runs[0].path / folder.LAST).stat().st_size}


if __name__ == "__main__":
    main()
