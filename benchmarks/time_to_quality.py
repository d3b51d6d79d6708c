"""How long training takes to reach a target quality: the published recipe and others, in one run.

    MURP_DATA=… python benchmarks/time_to_quality.py --until-target --out results/cpu_time_to_quality.json
    MURP_DATA=… python benchmarks/time_to_quality.py --device cuda --seeds 3 --out results/gpu_time_to_quality.json
    MURP_DATA=… python benchmarks/time_to_quality.py --device cuda --seeds 3 --data FB15k-237 --only matrices \
        --out results/gpu_time_to_quality_fb15k-237.json

A recipe is trained to its end, validated now and then, and timed without validation, after a run of one epoch that
compiles. Two times count: the time of the whole training, with the MRR on test of the weights of the best validation;
and the time until the first validation that reaches the target (MRR on valid). The protocol is standard. With
``--until-target`` a training ends at the target, and only the second time counts.
"""

from __future__ import annotations

import contextlib
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
        "MuRE with rotation, 50 negatives": {
            "model": "mure-rotation", "lr": 0.02, "batch_size": 1000, "negatives": 50, "epochs": 25,
            "validate_every": 2,
        },
        "MuRE with rotation, 100 negatives": {
            "model": "mure-rotation", "lr": 0.03, "batch_size": 2000, "negatives": 100, "epochs": 40,
            "validate_every": 10,
        },
    },
    "FB15k-237": {"matrices": {"model": "rescal", "lr": 0.1, "epochs": 40, "validate_every": 5}},
}  # fmt: skip

TARGETS = {"WN18RR": 0.46}  # MRR on valid, of graphs whose time until then is measured


class ReachedError(Exception):
    """The target is reached, and the training may end."""


class Clock(Silent):
    """Seconds of training alone, by epoch, and MRR on valid; with ``until`` it ends a training that reaches it."""

    def __init__(self, until: float | None) -> None:
        self.spent, self.after, self.until = 0.0, [0.0], until
        self.valid: dict[int, float] = {}

    def advance(self, state: State, chunk: Chunk, seconds: float, loss: float) -> None:
        self.spent += seconds

    def epoch(self, record: dict[str, Any]) -> None:
        self.after.append(self.spent)
        if "valid" in record:
            self.valid[record["epoch"]] = record["valid"]["mrr"]
            if self.until is not None and record["valid"]["mrr"] >= self.until:
                raise ReachedError


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--data", default="WN18RR", choices=OTHERS)
    options.add_argument("--target", type=float, help="MRR on valid, protocol standard; default: 0.46 for WN18RR")
    options.add_argument("--only", nargs="+", help="of the recipes; default: all, the published one among them")
    options.add_argument("--seeds", type=int, default=1, help="runs of each recipe but the published one")
    options.add_argument("--until-target", action="store_true", help="end a training at the target")
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    recipes = {"published": PUBLISHED, **OTHERS[chosen.data]}
    target = TARGETS.get(chosen.data) if chosen.target is None else chosen.target
    few: dict[str, Any] = (
        {"epochs": 2, "validate_every": 1, "batch_size": 32, "dim": 4} if chosen.quick else {"dim": 40}
    )
    few |= {"device": chosen.device, "compile_after": 0.0}
    figures: dict[str, Any] = {}
    for name, recipe in recipes.items():
        if chosen.only is None or name in chosen.only:
            seeds = range(1 if recipe is PUBLISHED else chosen.seeds)
            figures[name] = [
                timed(graph, {**recipe, **few, "seed": seed}, target, end=chosen.until_target) for seed in seeds
            ]
    settings = {"data": graph.name, "target": target, "recipes": recipes}
    what = "seconds of training until MRR on valid (standard) reaches the target; d=40, float32"
    store(result(what, settings, figures, torch.device(chosen.device)), chosen.out)


def timed(
    graph: KnowledgeGraph, settings: dict[str, Any], target: float | None, *, end: bool = False
) -> dict[str, Any]:
    """One recipe: when it reached the target, if there is one; what it reached in the end, unless it ends there."""
    with tempfile.TemporaryDirectory() as scratch:
        murp.train(graph, out=Path(scratch) / "warm", progress=Silent(), **{**settings, "epochs": 1})
        clock, path = Clock(target if end else None), Path(scratch) / "run"
        with contextlib.suppress(ReachedError):
            murp.train(graph, out=path, progress=clock, **settings)
        run = murp.load(path)
        reached = next((epoch for epoch, mrr in clock.valid.items() if target is not None and mrr >= target), None)
        cut = end and reached is not None
        return {
            "seconds_to_target": None if reached is None else clock.after[reached],
            "epoch_of_target": reached,
            "seconds": None if cut else clock.spent,
            "valid_mrr_standard": clock.valid,
            "test_mrr_standard": None if cut else run.evaluate("test").mrr,
            "settings": run.config.to_dict() | {"data": graph.name, "data_dir": ""},
        }


if __name__ == "__main__":
    main()
