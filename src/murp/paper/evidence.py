"""What is stored, read for a report: means and deviations over seeds, and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from murp.paper.lab import stored, stored_run

METRICS = ("mrr", "hits@10", "hits@3", "hits@1")  # in the paper's order
NAMES = {"mure": "MuRE", "murp": "MuRP"}


@dataclass(frozen=True)
class Spread:
    """Mean and sample deviation of one figure over ``n`` seeds; a single seed has no deviation, and none no mean."""

    mean: float
    deviation: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)) if values else math.nan, deviation, len(values))

    def __str__(self) -> str:
        if self.n == 0:
            return "diverged"
        return decimals(self.mean) if self.deviation is None else f"{decimals(self.mean)} ± {decimals(self.deviation)}"


class Evidence:
    """The folder of stored results."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.loaded: dict[str, dict[str, Any]] = {}

    def item(self, name: str) -> dict[str, Any] | None:
        """An item's file; None where it was not run."""
        return stored(self.out, name)

    def run(self, name: str) -> dict[str, Any]:
        """A run's file."""
        if name not in self.loaded:
            self.loaded[name] = stored_run(self.out, name)
        return self.loaded[name]

    def runs(self, cell: dict[str, Any]) -> list[dict[str, Any]]:
        """The runs of a cell that reached their end."""
        return [run for run in map(self.run, cell["runs"]) if "failed" not in run]

    def spread(self, cell: dict[str, Any], metric: str, protocol: str, split: str = "test") -> Spread:
        """One metric of a cell over its seeds."""
        return Spread.of([run["metrics"][split][protocol][metric] for run in self.runs(cell)])

    def by_relation(self, cell: dict[str, Any], relation: str, metric: str, protocol: str) -> Spread | None:
        """One metric of one relation over the cell's seeds; None where the split has no such fact."""
        groups = [run["metrics"]["test"][protocol]["by_relation"].get(relation) for run in self.runs(cell)]
        found = [group[metric] for group in groups if group is not None]
        return Spread.of(found) if found else None


def decimals(value: float, digits: int = 3) -> str:
    """As the paper prints: .475, -.003, 1.000; a dash where there is no number."""
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and text.lstrip("-").startswith("0.") else text


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign."""
    shown = round(value, digits) + 0.0  # no negative zero
    return ("+" if shown >= 0 else "") + decimals(shown, digits)
