"""The effect of half-precision tables on quality: MRR of trainings whose entities are rounded after every step.

    python benchmarks/half_tables.py --out results/half_tables.json

The entity table is kept in float32 and rounded to the values of another format after every step. So a step reads and
writes the same values as with a table of that format, and computes in float32. ``at random`` is stochastic rounding: up
or down at random, right on average. MRR on valid and test, protocol standard, after the last epoch, by seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from measure import parser, result, store, toy_graph
from murp import engines, evaluation
from murp.config import Config
from murp.engines import Task
from murp.graph import KnowledgeGraph
from murp.models import from_config
from murp.training.sampler import Sampler

Rounding = Callable[[Tensor, torch.Generator], Tensor]


def nearest(dtype: torch.dtype) -> Rounding:
    return lambda values, _: values.to(dtype).to(values.dtype)


def at_random(dtype: torch.dtype) -> Rounding:
    """x lies between two neighbours a < b of the format: b with the chance (x - a) / (b - a), else a."""

    def rounded(values: Tensor, draw: torch.Generator) -> Tensor:
        close = values.to(dtype)
        towards = torch.where(values > close, torch.inf, -torch.inf).to(dtype)
        other = torch.nextafter(close, towards).to(values.dtype)
        close = close.to(values.dtype)
        chance = (values - close) / (other - close)
        return torch.where(torch.rand(values.shape, generator=draw) < chance, other, close)

    return rounded


ROUNDINGS: dict[str, Rounding | None] = {
    "float32": None,
    "float16": nearest(torch.float16),
    "float16, at random": at_random(torch.float16),
    "bfloat16": nearest(torch.bfloat16),
    "bfloat16, at random": at_random(torch.bfloat16),
}


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser(__doc__)
    options.add_argument("--data", default="wordnet-mini")
    options.add_argument("--models", nargs="+", default=["murp", "mure"])
    options.add_argument("--dim", type=int, default=40)
    options.add_argument("--epochs", type=int, default=60)
    options.add_argument("--lr", type=float, default=50.0)
    options.add_argument("--seeds", type=int, default=3)
    chosen = options.parse_args(arguments)
    graph = toy_graph() if chosen.quick else KnowledgeGraph.load(chosen.data)
    seeds = 1 if chosen.quick else chosen.seeds
    figures: dict[str, Any] = {}
    for model in chosen.models:
        for name, rounding in ROUNDINGS.items():
            config = Config(model=model, dim=chosen.dim, lr=chosen.lr, epochs=2 if chosen.quick else chosen.epochs)
            found = [trained(graph, config.replace(seed=seed), rounding) for seed in range(seeds)]
            figures[f"{model}, {name}"] = {split: [one[split] for one in found] for split in ("valid", "test")}
            print(f"{model}, {name}: {figures[f'{model}, {name}']}", flush=True)
    settings = {"data": graph.name, "dim": chosen.dim, "lr": chosen.lr, "epochs": chosen.epochs, "protocol": "standard"}
    store(result("MRR with tables of half precision, by seed", settings, figures), chosen.out)


def trained(graph: KnowledgeGraph, config: Config, rounding: Rounding | None) -> dict[str, float]:
    """Train step by step, with the entities rounded after each; MRR by split."""
    model = from_config(config, graph.num_entities, graph.num_relations).initialise(config.seed)
    engine = engines.build("auto", [Task.of(config, model)])
    sampler = Sampler(
        graph.with_reciprocals(graph.train), graph.num_entities, batch_size=config.batch_size,
        negatives=config.negatives, seed=config.seed, device=torch.device("cpu"), steps_a_chunk=1,
    )  # fmt: skip
    draw, table = torch.Generator().manual_seed(config.seed), model.parameters["entity"]
    for epoch in range(config.epochs):
        for index in range(sampler.chunks):
            engine.run([sampler.chunk(epoch, index)], [config.lr])
            if rounding is not None:
                table.copy_(rounding(table, draw))
    splits = ("valid", "test")
    return {split: float(evaluation.evaluate(model, graph, split).mrr) for split in splits}


if __name__ == "__main__":
    main()
