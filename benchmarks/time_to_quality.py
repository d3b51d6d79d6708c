"""How long training takes to reach a target quality: the published recipe and others, in one run.

    MURP_DATA=… python benchmarks/time_to_quality.py --out results/cpu_time_to_quality.json
    MURP_DATA=… python benchmarks/time_to_quality.py --device cuda --seeds 3 --out results/gpu_time_to_quality.json
    MURP_DATA=… python benchmarks/time_to_quality.py --device cuda --seeds 3 --data FB15k-237 --only matrices \
        --out results/gpu_time_to_quality_fb15k-237.json

A recipe is trained to its end, with some validations, and timed without validation, after a run of one epoch that
compiles. Two times are stored: the time of the whole training, with the MRR on test of the weights of the best
validation; and the time to the first validation that reaches the target (MRR on valid). The protocol is standard.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import murp  # before torch, as in the command line: see murp/__init__.py

# isort: split
import torch

from measure import parser, result, store, toy_graph
from murp.engines import Chunk
from murp.graph import KnowledgeGraph
from murp.training.progress import Silent
from murp.training.state import State

PUBLISHED = {"model": "murp", "lr": 50.0, "epochs": 500, "validate_every": 10}
OTHERS: dict[str, dict[str, Any]] = {
    "WN18RR": {
        "rotation and stretch": {"model": "roth-stretch", "lr": 0.003, "epochs": 60, "validate_every": 10},
        "rotation and stretch, 50 negatives": {
            "model": "roth-stretch", "lr": 0.01, "negatives": 50, "epochs": 36, "validate_every": 2,
        },
    },
    "FB15k-237": {"matrices": {"model": "rescal", "lr": 0.1, "epochs": 40, "validate_every": 5}},
}  # fmt: skip


class Clock(Silent):
    """Seconds of training alone, by epoch."""

    def __init__(self) -> None:
        self.spent, self.after = 0.0, [0.0]

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.spent += seconds

    def epoch(self, record: dict[str, Any]) -> None:
        self.after.append(self.spent)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--data", default="WN18RR", choices=OTHERS)
    options.add_argument("--target", type=float, default=0.46, help="MRR on valid, protocol standard")
    options.add_argument("--only", nargs="+", help="of the recipes; default: all, the published one among them")
    options.add_argument("--seeds", type=int, default=1, help="runs of each recipe but the published one")
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    recipes = {"published": PUBLISHED, **OTHERS[chosen.data]}
    few: dict[str, Any] = (
        {"epochs": 2, "validate_every": 1, "batch_size": 32, "dim": 4} if chosen.quick else {"dim": 40}
    )
    few |= {"device": chosen.device, "compile_after": 0.0}
    figures: dict[str, Any] = {}
    for name, recipe in recipes.items():
        if chosen.only is None or name in chosen.only:
            seeds = range(1 if recipe is PUBLISHED else chosen.seeds)
            figures[name] = [timed(graph, {**recipe, **few, "seed": seed}, chosen.target) for seed in seeds]
    settings = {"data": graph.name, "target": chosen.target, "recipes": recipes}
    what = "seconds of training until MRR on valid (standard) reaches the target; d=40, float32"
    store(result(what, settings, figures, torch.device(chosen.device)), chosen.out)


def timed(graph: KnowledgeGraph, settings: dict[str, Any], target: float) -> dict[str, Any]:
    """One recipe: when it reached the target, and what it reached in the end."""
    with tempfile.TemporaryDirectory() as scratch:
        murp.train(graph, out=Path(scratch) / "warm", progress=Silent(), **{**settings, "epochs": 1})
        clock = Clock()
        run = murp.train(graph, out=Path(scratch) / "run", progress=clock, **settings)
        valid = {line["epoch"]: line["valid"]["mrr"] for line in run.metrics() if "valid" in line}
        reached = next((epoch for epoch, mrr in valid.items() if mrr >= target), None)
        return {
            "seconds_to_target": None if reached is None else clock.after[reached],
            "epoch_of_target": reached,
            "seconds": clock.spent,
            "valid_mrr_standard": valid,
            "test_mrr_standard": run.evaluate("test").mrr,
            "settings": run.config.to_dict() | {"data": graph.name, "data_dir": ""},
        }


if __name__ == "__main__":
    main()
