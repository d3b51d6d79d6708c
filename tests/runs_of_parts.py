"""Short trainings with one part or another, and what they leave."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

import murp
from murp import registry
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint

SHORT: dict[str, Any] = {
    "model": "mure", "dim": 4, "epochs": 4, "lr": 2.0, "batch_size": 16, "device": "cpu", "engine": "torch",
    "validate_every": 0, "initial_scale": 0.1,
}  # fmt: skip


def settings(**chosen: Any) -> dict[str, Any]:
    """Those of a short training, with few negatives where the objective draws some."""
    drawn = registry.find("objective", chosen.get("objective", "bernoulli")).sampled
    return {**SHORT, **({"negatives": 5} if drawn else {}), **chosen}


def train(graph: KnowledgeGraph, out: Path, **chosen: Any) -> dict[str, torch.Tensor]:
    """Train, and give what the last checkpoint has."""
    murp.train(graph, out=out, **settings(**chosen))
    return tables(out)


def tables(out: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(out / "last.safetensors")[0]


def losses(out: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (out / "metrics.jsonl").read_text().splitlines()]


def assert_same_bits(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> None:
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def assert_resumes_bit_for_bit(graph: KnowledgeGraph, folder: Path, **chosen: Any) -> None:
    """Four epochs are two and two more."""
    whole = train(graph, folder / "whole", **chosen)
    train(graph, folder / "halves", **{**chosen, "epochs": 2})
    murp.resume(folder / "halves", epochs=4)
    assert_same_bits(tables(folder / "halves"), whole)
    assert losses(folder / "halves") == losses(folder / "whole")
