"""The effect of protocols: the same weights ranked in other ways, and the same training with negatives that use more
facts.

    MURP_DATA=… python benchmarks/protocols.py --device cuda --data WN18RR --out results/protocols_wn18rr.json
    python benchmarks/protocols.py --runs runs/a runs/b --out results/protocols_runs.json

Each training is done three times: with negatives that are any entities, with negatives that are checked against the
facts of train, and with negatives that are checked against train, valid and test. The checkpoint is the one with the
best MRR on valid (protocol standard). Every run's test facts are then ranked under ``standard`` and with one change at
a time: the subject removed from its ranking, facts with entities that train does not have dropped, ties in the model's
favour and against it; and with all favourable changes together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import murp
from leaking_negatives import leaking
from measure import parser, result, store, toy_graph
from murp.evaluation import KnownFacts, Metrics, Protocol, Scorer
from murp.evaluation.ranks import better_and_equal
from murp.graph import KnowledgeGraph
from murp.training.progress import Silent

UNCHECKED, TRAIN, ALL = "any entity", "checked against train", "checked against train, valid and test"
TRAININGS: dict[str, dict[str, Any]] = {
    # A sampled objective, as HyboNet's authors train.
    "HyboNet": {
        "model": "hybonet", "objective": "bernoulli", "negatives": 50, "optimizer": "adam", "lr": 0.003,
        "lr_schedule": "constant", "batch_size": 500, "regularizer": "none", "epochs": 100, "validate_every": 10,
    },
    "MuRP": {"model": "murp", "lr": 50.0, "epochs": 200, "validate_every": 20},
}  # fmt: skip
ON_A_GRAPH: dict[tuple[str, str], dict[str, Any]] = {
    ("MuRP", "FB15k-237"): {"lr": 10.0, "epochs": 60, "validate_every": 6},  # the paper's rate; three times the facts
}
TIES = {"ties in favour": 0.0, "standard": 0.5, "ties against": 1.0}  # the share of equal entities that come first


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--data", nargs="+", default=["WN18RR"], help="graphs to train on")
    options.add_argument("--only", nargs="+", choices=TRAININGS, default=list(TRAININGS), help="of the trainings")
    options.add_argument("--dim", type=int, default=40)
    options.add_argument("--epochs", type=int, help="of every training, in place of its own number")
    options.add_argument("--seeds", type=int, nargs="+", default=[0])
    options.add_argument("--runs", type=Path, nargs="+", help="run folders: rank their weights, and train nothing")
    chosen = options.parse_args(arguments)
    # One engine for all negatives: the others know uniform ones alone.
    changes: dict[str, Any] = {"device": chosen.device, "dim": chosen.dim, "engine": "torch"}
    if chosen.epochs:
        changes |= {"epochs": chosen.epochs, "validate_every": max(1, chosen.epochs // 10)}
    if chosen.quick:
        changes |= {"dim": 4, "epochs": 2, "validate_every": 1, "batch_size": 64}
    figures: dict[str, Any] = {"trainings": [], "runs": []}
    if chosen.runs:
        runs = [murp.load(path, device=chosen.device) for path in chosen.runs]
        figures["runs"] = [{"run": run.path.name, **told(run)} for run in runs]
    else:
        for graph in [toy_graph()] if chosen.quick else [KnowledgeGraph.load(name) for name in chosen.data]:
            for name in chosen.only:
                own = {**TRAININGS[name], **ON_A_GRAPH.get((name, graph.name), {}), **changes}
                by_negatives = in_three_ways(graph, own, chosen.seeds)
                figures["trainings"].append({"name": name, "data": graph.name, "by_negatives": by_negatives})
    settings = {"seeds": [] if chosen.runs else chosen.seeds}
    what = "test figures of the same weights under several protocols, and of trainings whose negatives know more facts"
    store(result(what, settings, figures, torch.device(chosen.device)), chosen.out)


def in_three_ways(graph: KnowledgeGraph, settings: dict[str, Any], seeds: Sequence[int]) -> dict[str, Any]:
    """One training with each kind of negatives: a list of runs, a seed each."""
    found: dict[str, Any] = {}
    for kind in (UNCHECKED, TRAIN, ALL):
        with (
            leaking(graph)
            if kind == ALL
            else contextlib.nullcontext("uniform" if kind == UNCHECKED else "checked") as n
        ):
            found[kind] = [trained(graph, {**settings, "corruption": n, "seed": seed}) for seed in seeds]
    return found


def trained(graph: KnowledgeGraph, settings: dict[str, Any]) -> dict[str, Any]:
    """Train once and rank."""
    with tempfile.TemporaryDirectory() as scratch:
        began = time.perf_counter()
        run = murp.train(graph, out=Path(scratch) / "run", progress=Silent(), **settings)
        return {"seed": run.config.seed, "seconds": time.perf_counter() - began, **told(run)}


def told(run: murp.Run) -> dict[str, Any]:
    """Settings, the epoch that valid chose, and the figures on test."""
    settings = run.config.to_dict() | {"data": run.graph.name, "data_dir": ""}
    return {"epoch": run.state["epoch"], "settings": settings, "test": effects(run.model, run.graph)}


def effects(model: Scorer, graph: KnowledgeGraph) -> dict[str, Any]:
    """The test figures of the same weights: under ``standard``, and with something changed.

    Beside them ``standard`` and both ties for scores that are rounded to bfloat16, as an evaluation in half precision
    has them; how many queries have a tie, and how many facts and entities train does not have.
    """
    seen = np.zeros(graph.num_entities, dtype=bool)
    seen[graph.train[:, [0, 2]]] = True
    kept = dataclasses.replace(graph, test=graph.test[seen[graph.test[:, [0, 2]]].all(1)])
    without = Changed(model, absent=torch.from_numpy(~seen))
    better, equal = counted(model, graph, "standard")
    rounded = counted(Changed(model, dtype=torch.bfloat16), graph, "standard")
    return {
        **{name: metrics(better + share * equal) for name, share in TIES.items()},
        "subject out": metrics(mean(counted(model, graph, "paper"))),
        "unseen dropped": metrics(mean(counted(without, kept, "standard"))),
        "all in favour": metrics(counted(without, kept, "paper")[0]),
        "in bfloat16": {name: metrics(rounded[0] + share * rounded[1]) for name, share in TIES.items()},
        "tied": {"queries": int((equal > 0).sum()), "in bfloat16": int((rounded[1] > 0).sum())},
        "unseen": {"facts": len(graph.test) - len(kept.test), "entities": int((~seen).sum())},
    }


def counted(
    model: Scorer, graph: KnowledgeGraph, protocol: Protocol
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Better and equal entities of every query of the test facts."""
    known = KnownFacts.of(graph)
    return better_and_equal(model, graph.test, known, num_relations=graph.num_relations, protocol=protocol)


def mean(counts: tuple[NDArray[np.float64], NDArray[np.float64]]) -> NDArray[np.float64]:
    """Entities before the target, over all orders of the ties."""
    better, equal = counts
    return better + equal / 2


def metrics(before: NDArray[np.float64]) -> dict[str, Any]:
    """MRR, mean rank and Hits@k of targets with so many entities before them."""
    return Metrics.of(1 + before, "standard").to_dict()


class Changed:
    """A model whose scores are rounded to ``dtype``, or that has no score for entities that are ``absent`` (N)."""

    def __init__(self, model: Scorer, dtype: torch.dtype | None = None, absent: Tensor | None = None) -> None:
        self.model, self.dtype = model, dtype
        self.absent = None if absent is None else absent.to(model.device)

    @property
    def num_entities(self) -> int:
        return self.model.num_entities

    @property
    def device(self) -> torch.device:
        return self.model.device

    def score_objects(self, subjects: Tensor, relations: Tensor) -> Tensor:
        scores = self.model.score_objects(subjects, relations)
        if self.dtype is not None:
            scores = scores.to(self.dtype).to(scores.dtype)
        # Below all others, so that no such entity stands before a target or ties with one.
        return scores if self.absent is None else scores.masked_fill(self.absent, -torch.inf)


if __name__ == "__main__":
    main()
