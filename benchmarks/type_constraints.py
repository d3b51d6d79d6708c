"""What type constraints do to MRR: the same weights under the protocols ``standard`` and ``types``.

    MURP_DATA=… python benchmarks/type_constraints.py --out results/type_constraints.json

Each model is trained once. Then valid and test are ranked without and with the constraints, all facts and both
directions. Stored beside MRR: how many true answers the constraints allow, and which share of all entities they allow,
as a mean over the questions. ``SHARE``, the one value that was chosen, was chosen on valid; test was not looked at.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import murp  # before torch, as in the command line: see murp/__init__.py

# isort: split
import numpy as np

from measure import parser, result, store, toy_graph
from murp.graph import KnowledgeGraph, Split
from murp.graph.types import ALONE, FEWEST, SHARE, Types
from murp.training.progress import Silent

RESCAL = {"recipe": "fb15k-237"}
FOR_FB15K = 20.0  # the learning rate of MuRP d=40 with the best MRR on valid in results/paper, of 1, 5, 10, 20, 50, 100
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "MuRP d=40, wordnet-mini": ("wordnet-mini", {"epochs": 60}),
    "RESCAL d=40, wordnet-mini": ("wordnet-mini", {**RESCAL, "epochs": 30}),
    "RESCAL d=40, UMLS": ("UMLS", {**RESCAL, "epochs": 60}),
    "MuRP d=40, NELL-995-h100": ("NELL-995-h100", {"epochs": 45}),
    "MuRP d=40, WN18RR": ("WN18RR", {"epochs": 60}),
    "MuRP d=40, FB15k-237": ("FB15k-237", {"epochs": 60, "lr": FOR_FB15K}),
}
SPLITS: tuple[Split, Split] = ("valid", "test")
_AT_ONCE = 256  # questions


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", default=list(CASES), choices=list(CASES), metavar="CASE")
    chosen = options.parse_args(arguments)
    figures = []
    for name in chosen.only[:1] if chosen.quick else chosen.only:
        data, settings = CASES[name]
        graph = toy_graph() if chosen.quick else KnowledgeGraph.load(data)
        if chosen.quick:
            settings = {**settings, "dim": 2, "epochs": 1}
        with tempfile.TemporaryDirectory() as scratch:
            run = murp.train(graph, out=Path(scratch) / "run", device="cpu", seed=0, progress=Silent(), **settings)
            splits = {split: measured(run, split) for split in SPLITS}
        figures.append({"run": name, "data": graph.name, "settings": run.config.to_dict(), **splits})
    about = {"share": SHARE, "alone": ALONE, "fewest": FEWEST, "seed": 0, "protocols": ["standard", "types"]}
    store(result("type constraints: the same weights without and with them", about, figures), chosen.out)


def measured(run: murp.Run, split: Split) -> dict[str, Any]:
    """MRR under both protocols, and what the constraints allow."""
    types = Types(run.graph)
    asked = run.graph.with_reciprocals(run.graph.split(split)).astype(np.int64)
    true, entities = 0, 0.0
    for start in range(0, len(asked), _AT_ONCE):
        subjects, relations, objects = asked[start : start + _AT_ONCE].T
        may = types.masks(subjects, relations)
        true += int(may[np.arange(len(may)), objects].sum())
        entities += float(may.mean(1).sum())
    reports = {protocol: run.evaluate(split, protocol=protocol).to_dict() for protocol in ("standard", "types")}
    return {**reports, "true_answers_allowed": true / len(asked), "entities_allowed": entities / len(asked)}


if __name__ == "__main__":
    main()
