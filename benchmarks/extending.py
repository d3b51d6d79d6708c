"""New entities without training again: how good the result is, and how long it takes.

    MURP_DATA=… python benchmarks/extending.py --device cuda --data WN18RR FB15k-237 --out results/gpu_extending.json
    MURP_DATA=… python benchmarks/extending.py --device cuda --data WN18RR --only RESCAL --dim 200 \
        --out results/gpu_extending_d200.json

A share of the entities (5 %) is held out: one run is trained without any fact that mentions them, and then extended
with their training facts. Another run is trained on all of train. Both rank the facts of valid and test that mention a
held-out entity, among the same entities and filtered by the same facts (protocol standard). Facts of valid and test
with entities that train does not have are dropped first, so that all runs have the same entities. An entity is also new
to the extended run if all its facts mention a held-out entity.

A third run starts from the extended one and trains everything for 1 % of the epochs (``murp train --init-from``).

The time of the whole training is the time in its run folder, with validation. The time of the extension is the time of
placing, from the trained model to the last step. The extension is made twice and the second one is measured, since the
first one compiles kernels (for the trainings, a toy graph does this). With ``--processor`` the extension is also
measured on the CPU, against the time of an epoch times the epochs. During development, variants were compared on valid.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import murp
from measure import parser, result, store, toy_graph
from murp.evaluation import KnownFacts, rank
from murp.graph import SPLITS, KnowledgeGraph, Triples
from murp.graph.indexing import table_of
from murp.models import Model
from murp.runs import folder
from murp.training.progress import Silent

TRAININGS: dict[str, dict[str, Any]] = {
    "MuRP": {"model": "murp", "lr": 50.0, "epochs": 500, "validate_every": 100},
    "RotH with stretch": {"recipe": "wn18rr", "validate_every": 20},
    "RESCAL": {"recipe": "fb15k-237", "validate_every": 20},
}
ON_A_GRAPH: dict[tuple[str, str], dict[str, Any]] = {
    ("MuRP", "FB15k-237"): {"lr": 10.0},
    ("RESCAL", "WN18RR"): {
        "regularizer_weight": 0.1, "dura_balance": 2.0, "query_dropout": 0.0, "answer_weight": 9.0, "epochs": 160,
    },
}  # fmt: skip
SHARE = 0.05
BAR = {"share_of_mrr": 0.9, "share_of_seconds": 0.01}


@dataclass(frozen=True, eq=False)
class Divided:
    """``whole``; ``base`` without what mentions held-out entities; and of whole the facts that do, by split."""

    whole: KnowledgeGraph
    base: KnowledgeGraph
    about: dict[str, Triples]
    held: int


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    options.add_argument("--data", nargs="+", default=["WN18RR", "FB15k-237"], help="graphs to train on")
    options.add_argument("--only", nargs="+", choices=TRAININGS, default=list(TRAININGS), help="of the trainings")
    options.add_argument("--dim", type=int, default=40)
    options.add_argument("--epochs", type=int, help="of every training, in place of its own number")
    options.add_argument("--seed", type=int, default=0, help="of the held-out entities and of every training")
    options.add_argument("--processor", action="store_true", help="time the extension on the processor as well")
    options.add_argument("--runs", type=Path, help="keep the run folders here, and use those that are there")
    chosen = options.parse_args(arguments)
    changes: dict[str, Any] = {"device": chosen.device, "dim": chosen.dim, "seed": chosen.seed}
    if chosen.epochs:
        changes["epochs"] = chosen.epochs
    if chosen.quick:
        changes |= {"dim": 4, "epochs": 2, "validate_every": 1, "batch_size": 64}
    figures = []
    with tempfile.TemporaryDirectory() as temporary:
        home = chosen.runs or Path(temporary)
        if not chosen.quick:
            warm_up(Path(temporary) / "warm", chosen.only, chosen.device)
        for graph in [toy_graph()] if chosen.quick else [KnowledgeGraph.load(name) for name in chosen.data]:
            divided = held_out(graph, 0.2 if chosen.quick else SHARE, chosen.seed)
            for name in chosen.only:
                own = {**TRAININGS[name], **ON_A_GRAPH.get((name, graph.name), {}), **changes}
                found = measured(divided, own, home / graph.name / name, processor=chosen.processor or chosen.quick)
                figures.append({"model": name, "data": graph.name, **found})
                print(figures[-1])
    settings = {"share": SHARE, "seed": chosen.seed, "dim": chosen.dim, "bar": BAR, "protocol": "standard"}
    what = "5 % of the entities held out: extended runs against whole trainings, on the facts about those entities"
    store(result(what, settings, figures, torch.device(chosen.device)), chosen.out)


def held_out(graph: KnowledgeGraph, share: float, seed: int) -> Divided:
    """Draw the held-out entities and part the facts."""
    seen = _mentioned(graph.train, graph.num_entities)
    parts = [graph.train, *(_within(graph.split(split), seen) for split in SPLITS[1:])]
    whole = KnowledgeGraph.from_tables(graph.name, *(table_of(graph, part) for part in parts))
    held = np.zeros(whole.num_entities, bool)
    number = round(share * whole.num_entities)
    held[np.random.default_rng(seed).choice(whole.num_entities, number, replace=False)] = True
    about = {split: (facts := whole.split(split))[held[facts[:, 0]] | held[facts[:, 2]]] for split in SPLITS}
    train = _within(whole.train, ~held)
    kept = _mentioned(train, whole.num_entities)
    others = [_within(whole.split(split), kept) for split in SPLITS[1:]]
    base = KnowledgeGraph.from_tables(graph.name, *(table_of(whole, part) for part in (train, *others)))
    return Divided(whole, base, about, number)


def _mentioned(facts: Triples, entities: int) -> NDArray[np.bool_]:
    found = np.zeros(entities, bool)
    found[facts[:, [0, 2]].ravel()] = True
    return found


def _within(facts: Triples, entities: NDArray[np.bool_]) -> Triples:
    return facts[entities[facts[:, 0]] & entities[facts[:, 2]]]


def measured(divided: Divided, settings: dict[str, Any], home: Path, *, processor: bool = False) -> dict[str, Any]:
    """Both trainings and the extension, and what they rank."""
    full = murp.train(divided.whole, out=home / "full", progress=Silent(), **settings)
    base = murp.train(divided.base, out=home / "base", progress=Silent(), **settings)
    facts = table_of(divided.whole, divided.about["train"])
    taken = []
    for _ in range(2):
        shutil.rmtree(home / "extended", ignore_errors=True)
        made = base.extend(facts, home / "extended")
        taken.append(placing_seconds(made))
    shutil.rmtree(home / "trained on", ignore_errors=True)
    few = max(1, round(full.config.epochs / 100))
    further = {**settings, "epochs": few, "validate_every": 0, "init_from": str(made.path)}
    on = murp.train(made.path / folder.GRAPH, out=home / "trained on", progress=Silent(), **further)
    seconds = {
        "whole training": full.metrics()[-1]["seconds"],
        "extension": taken[1],
        "extension, the first of a process": taken[0],
        "extension and 1 % of the epochs": placing_seconds(made) + on.metrics()[-1]["seconds"],
    }
    if processor:
        seconds |= on_the_processor(divided, {**settings, "epochs": full.config.epochs}, base.path, home)
    others = {split: _others(divided, split) for split in ("valid", "test")}
    found = {
        name: {
            "new entities": {split: mrr(run, divided, divided.about[split]) for split in ("valid", "test")},
            "other facts": {split: mrr(run, divided, others[split]) for split in ("valid", "test")},
        }
        for name, run in (("whole training", full), ("extended", made), ("extended, then 1 % of the epochs", on))
    }
    ours, theirs = (found[name]["new entities"]["test"] for name in ("extended", "whole training"))
    shares = {
        "share_of_mrr": ours / theirs if ours and theirs else None,
        "share_of_seconds": seconds["extension"] / seconds["whole training"],
    }
    if "extension, processor" in seconds:
        whole = seconds["whole training, processor"]
        shares["share_of_seconds_on_the_processor"] = seconds["extension, processor"] / whole
    counts = {
        "held_out": divided.held,
        "new_to_the_run": made.graph.num_entities - base.graph.num_entities,
        **{f"facts_{split}": len(facts) for split, facts in divided.about.items()},
    }
    return {"settings": full.config.to_dict(), **counts, "mrr": found, "seconds": seconds, **shares}


def placing_seconds(run: murp.Run) -> float:
    """What the placing of an extended run took."""
    found: float = folder.read_environment(run.path)["extended"]["seconds"]
    return found


def on_the_processor(divided: Divided, settings: dict[str, Any], base: Path, home: Path) -> dict[str, float]:
    """The extension on the processor, and a whole training there: its second epoch times the epochs."""
    for name in ("extended, processor", "two epochs, processor"):
        shutil.rmtree(home / name, ignore_errors=True)
    facts = table_of(divided.whole, divided.about["train"])
    made = murp.load(base, device="cpu").extend(facts, home / "extended, processor")
    short = {**settings, "device": "cpu", "epochs": 2, "validate_every": 0}
    lines = murp.train(divided.whole, out=home / "two epochs, processor", progress=Silent(), **short).metrics()
    an_epoch = lines[1]["seconds"] - lines[0]["seconds"]
    return {"extension, processor": placing_seconds(made), "whole training, processor": an_epoch * settings["epochs"]}


def _others(divided: Divided, split: Any) -> Triples:
    """The facts of a split that mention entities of the base alone."""
    return divided.whole.split(split)[~np.isin(_rows(divided.whole.split(split)), _rows(divided.about[split]))]


def _rows(facts: Triples) -> NDArray[Any]:
    return np.ascontiguousarray(facts).view([("", facts.dtype)] * 3).ravel()


def mrr(run: murp.Run, divided: Divided, facts: Triples) -> float | None:
    """Of facts of the whole graph, both directions, filtered by all that it states."""
    if len(facts) == 0:
        return None
    whole = divided.whole
    model = in_the_order_of(run, whole)
    ranks = rank(model, facts, KnownFacts.of(whole), num_relations=whole.num_relations)
    return float(np.mean(1 / np.concatenate([ranks.tail, ranks.head])))


def in_the_order_of(run: murp.Run, graph: KnowledgeGraph) -> Model:
    """The run's model with its rows numbered as in ``graph``."""
    from murp import models
    from murp.training.weight_transfer import transfer

    model = models.from_config(run.config, graph.num_entities, graph.num_relations)
    model.initialise(0).to(run.model.device)
    transferred = transfer(run, model, graph)
    assert bool(transferred.entities.all()), "the run lacks an entity of the graph"
    return model


def warm_up(home: Path, names: Sequence[str], device: str) -> None:
    """Imports and compiled loops, so that no measurement waits for them."""
    divided = held_out(toy_graph(), 0.2, 0)
    for name in names:
        measured(divided, {**TRAININGS[name], "epochs": 1, "validate_every": 1, "device": device}, home / name)


if __name__ == "__main__":
    main()
