"""MRR of trainings with negatives from one part of the entities (``corruption = local``), beside uniform ones.

    python benchmarks/local_negatives.py --data WN18RR --out results/local_negatives_wn18rr.json
    python benchmarks/local_negatives.py --data FB15k-237 --epochs 10 --out results/local_negatives_fb15k-237.json

Local negatives send less between ranks (benchmarks/distributed.py), and are worth it only if models stay as good. The
model is MuRE with rotation, which needs few epochs. MRR on valid and test, protocol standard, by seed, of the weights
after the last epoch: nothing is chosen by either split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from half_tables import SPLITS, trained
from measure import parser, result, store, toy_graph
from murp.graph import KnowledgeGraph

CASES: dict[str, dict[str, Any]] = {
    "uniform": {"corruption": "uniform"},
    "local, 8 parts": {"corruption": "local", "entity_parts": 8},
    "local, 100 parts": {"corruption": "local", "entity_parts": 100},
}
SETTINGS: dict[str, Any] = {"model": "mure-rotation", "dim": 40, "lr": 0.02, "batch_size": 1000, "negatives": 50}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="WN18RR")
    options.add_argument("--epochs", type=int, default=25)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    seeds, epochs = (1, 1) if chosen.quick else (chosen.seeds, chosen.epochs)
    common = {**SETTINGS, "epochs": epochs, "engine": "torch", "device": chosen.device, "validate_every": 0}
    figures: dict[str, Any] = {}
    for case, further in CASES.items():
        found = trained(graph, {**common, **further}, seeds)
        figures[case] = {split: found[split] for split in SPLITS}
        print(f"{case}: {figures[case]}", flush=True)
    told = {**common, "data": graph.name, "cases": CASES, "seeds": list(range(seeds)), "protocol": "standard"}
    what = "MRR by the entities that negatives are drawn from, by seed"
    store(result(what, told, figures, torch.device(chosen.device)), chosen.out)


if __name__ == "__main__":
    main()
