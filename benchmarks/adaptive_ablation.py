"""MuRE with transformed norms, the cell of table 2 furthest below the paper's value, with adaptive optimizers.

    MURP_DATA=… python benchmarks/adaptive_ablation.py --device cuda --out results/paper/adaptive.json

Its score is the unbounded product 2⟨x, y⟩: SGD diverges at learning rates that suit distances, and leaves the origin
slowly at lower rates, as the trials of the report show. Each adaptive optimizer is tried with several rates and initial
values, one seed each, in batches of 1,024. The best on valid (MRR, protocol standard) is evaluated on test with three
seeds. Each optimizer has its own process; they run at the same time. The report shows the result below table 2.
"""

from __future__ import annotations

import multiprocessing
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import murp
from measure import parser, result, store, toy_graph
from murp.training.progress import Silent

CELL = {"kind": "biases", "part": "transformed-norm", "model": "mure"}
RATES = {"adagrad": [0.3, 0.1, 0.03], "row-adagrad": [0.3, 0.1, 0.03], "adam": [0.01, 0.003, 0.001]}
SCALES = [0.001, 0.1]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--epochs", type=int, default=300)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--only", nargs="+", choices=RATES, default=list(RATES), help="of the optimizers")
    options.add_argument("--work", type=Path, help="folder for the runs, to go on with; default: one that is removed")
    chosen = options.parse_args(arguments)
    epochs, seeds = (2, 2) if chosen.quick else (chosen.epochs, chosen.seeds)
    graph = toy_graph() if chosen.quick else murp.KnowledgeGraph.load("WN18RR")
    fixed: dict[str, Any] = {
        "model": CELL["model"], "bias": CELL["part"], "dim": 5 if chosen.quick else 40, "epochs": epochs,
        "validate_every": max(1, epochs // 20), "batch_size": 1024, "device": chosen.device, "compile_after": 0.0,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        work = chosen.work or Path(scratch)
        rates = {"adam": [0.01]} if chosen.quick else {name: RATES[name] for name in chosen.only}
        given = [(graph, name, rates[name], fixed, seeds, work / name) for name in rates]
        if len(given) == 1:
            found = {given[0][1]: of_optimizer(*given[0])}
        else:
            with ProcessPoolExecutor(len(given), mp_context=multiprocessing.get_context("spawn")) as pool:
                found = dict(zip(rates, pool.map(of_optimizer, *zip(*given, strict=True)), strict=True))
    figures = {"cell": CELL, "optimizers": found}
    store(result("adaptive optimizers", fixed, figures), chosen.out)


def of_optimizer(
    graph: murp.KnowledgeGraph, name: str, rates: list[float], fixed: dict[str, Any], seeds: int, work: Path
) -> dict[str, Any]:
    """What an optimizer reached on valid by rate and initial scale, and the best of these on test."""
    grid: Any = {**fixed, "optimizer": name, "lr": rates, "initial_scale": SCALES}
    tried = murp.sweep(graph, out=work / "tried", progress=Silent(), **grid)
    rows = [{**_varied(one), "valid_mrr": one.mrr, "epoch": one.epoch} for one in tried]
    if tried[0].run is None:
        return {"tried": rows, "runs": []}
    again: Any = {**grid, **_varied(tried[0]), "seed": list(range(seeds))}
    runs = [one.run for one in murp.sweep(graph, out=work / "seeds", progress=Silent(), **again) if one.run is not None]
    figures = [{protocol: run.evaluate("test", protocol).mrr for protocol in ("standard", "paper")} for run in runs]
    return {"tried": rows, "best": _varied(tried[0]), "runs": figures}


def _varied(trial: Any) -> dict[str, float]:
    return {name: trial.settings[name] for name in ("lr", "initial_scale")}


if __name__ == "__main__":
    main()
