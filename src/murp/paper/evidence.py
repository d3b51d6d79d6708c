"""What is stored, read for a report: means and deviations over seeds, and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from murp.paper.experiments import read, read_settings, stored, stored_run
from murp.paper.history import read as read_history

METRICS = ("mrr", "hits@10", "hits@3", "hits@1")  # in the paper's order
ADAPTIVE = "adaptive"  # what benchmarks/adaptive_ablation.py stores
NAMES = {"mure": "MuRE", "murp": "MuRP"}


@dataclass(frozen=True)
class Spread:
    """Mean and sample deviation of one value over ``n`` of ``planned`` seeds; the others diverged.

    A single seed has no deviation, and none no mean.
    """

    mean: float
    deviation: float | None
    n: int
    planned: int

    @classmethod
    def of(cls, values: Sequence[float], planned: int | None = None) -> Spread:
        """Over what the runs that reached their end have; ``planned`` is how many there should be."""
        mean = float(np.mean(values)) if values else math.nan
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 and math.isfinite(mean) else None
        return cls(mean, deviation, len(values), len(values) if planned is None else planned)

    def less(self, other: Spread | float) -> Spread:
        """The difference of two independent values: deviations add in squares, and it rests on the fewer runs.

        A plain number, as the paper prints them, has no deviation to add.
        """
        if not isinstance(other, Spread):
            return Spread(self.mean - other, self.deviation, self.n, self.planned)
        known = self.deviation is not None and other.deviation is not None
        deviation = math.hypot(self.deviation or 0.0, other.deviation or 0.0) if known else None
        return Spread(self.mean - other.mean, deviation, min(self.n, other.n), max(self.planned, other.planned))

    def __neg__(self) -> Spread:
        return Spread(-self.mean, self.deviation, self.n, self.planned)

    @property
    def seeds(self) -> str:
        """``3``; ``2 of 3, 1 diverged``."""
        lost = self.planned - self.n
        return f"{self.n} of {self.planned}, {lost} diverged" if lost else str(self.n)

    def __str__(self) -> str:
        if self.n == 0:
            return "diverged"
        return decimals(self.mean) if self.deviation is None else f"{decimals(self.mean)} ± {decimals(self.deviation)}"


class Evidence:
    """The folder of stored results."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.loaded: dict[str, dict[str, Any]] = {}
        self.history = read_history(out)

    def item(self, name: str) -> dict[str, Any] | None:
        """An item's file; None if it was not run."""
        return stored(self.out, name)

    def measured(self, name: str) -> dict[str, Any] | None:
        """What a benchmark stored beside the items; None if it was not run."""
        path = self.out / f"{name}.json"
        return read(path) if path.exists() else None

    def run(self, name: str) -> dict[str, Any]:
        """A run's file."""
        if name not in self.loaded:
            self.loaded[name] = stored_run(self.out, name)
        return self.loaded[name]

    def runs(self, cell: dict[str, Any]) -> list[dict[str, Any]]:
        """The runs of a cell that reached their end."""
        return [run for run in map(self.run, cell["runs"]) if "failed" not in run]

    def every_run(self) -> list[dict[str, Any]]:
        """Every stored run, those that diverged and no item names included."""
        return [self.run(file.stem) for file in sorted((self.out / "runs").glob("*.json"))]

    def results(self) -> dict[str, dict[str, Any]]:
        """Every stored item and run, by name."""
        items = {name: item for name in read_settings() if (item := self.item(name)) is not None}
        if (adaptive := self.measured(ADAPTIVE)) is not None:
            items[ADAPTIVE] = adaptive
        return {**items, **{str(run["name"]): run for run in self.every_run()}}

    def spread(self, cell: dict[str, Any], metric: str, protocol: str, split: str = "test") -> Spread:
        """One metric of a cell over its seeds."""
        return self.over(cell, lambda run: run["metrics"][split][protocol][metric])

    def over(self, cell: dict[str, Any], figure: Callable[[dict[str, Any]], float]) -> Spread:
        """Any value of a cell's runs over its seeds."""
        return Spread.of([figure(run) for run in self.runs(cell)], len(cell["runs"]))

    def by_relation(self, cell: dict[str, Any], relation: str, metric: str, protocol: str) -> Spread | None:
        """One metric of one relation over the cell's seeds; None if the split has no such fact."""
        groups = [run["metrics"]["test"][protocol]["by_relation"].get(relation) for run in self.runs(cell)]
        found = [group[metric] for group in groups if group is not None]
        return Spread.of(found, len(cell["runs"])) if found else None

    def lead(self, item: dict[str, Any], **which: Any) -> Spread:
        """Test MRR of MuRP less that of MuRE under protocol paper, of the item's cells that are as ``which`` says."""
        cells = {
            cell["model"]: cell for cell in item["cells"] if all(cell[name] == value for name, value in which.items())
        }
        mure, murp = (self.spread(cells[model], "mrr", "paper") for model in ("mure", "murp"))
        return murp.less(mure)


def seeds_of(spreads: Mapping[str, Spread]) -> str:
    """How many seeds the values of a row rest on: once where all have as many, else model by model."""
    found = {model: spread.seeds for model, spread in spreads.items()}
    if len(set(found.values())) == 1:
        return next(iter(found.values()))
    return "; ".join(f"{NAMES[model]} {seeds}" for model, seeds in found.items())


def correlations(item: dict[str, Any]) -> dict[str, Spread]:
    """Figure 4's rank correlations over the seeds, by model; where norms or biases are all alike there is none."""
    return {
        NAMES[cell["model"]]: Spread.of(
            [math.nan if rho is None else rho for rho in cell["spearman"]], len(cell["runs"])
        )
        for cell in item["cells"]
    }


def decimals(value: float, digits: int = 3) -> str:
    """As the paper prints: .475, -.003, 1.000; a dash if there is no number."""
    if math.isnan(value):
        return "–"
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and text.lstrip("-").startswith("0.") else text


def below_one(value: float, digits: int) -> str:
    """A share that reads 1.000 only where it is 1: further digits where rounding would hide that it is not."""
    while digits < 9 and value < 1 and float(f"{value:.{digits}f}") == 1:
        digits += 1
    return decimals(value, digits)


def signed(value: float, digits: int = 3) -> str:
    """A difference with its sign; what rounds to nothing has none."""
    shown = round(value, digits) + 0.0  # no negative zero
    return ("+" if shown > 0 else "") + decimals(shown, digits)


def signed_spread(spread: Spread, digits: int = 3) -> str:
    """``+.012 ± .002``."""
    if spread.n == 0:
        return "diverged"
    deviation = "" if spread.deviation is None else f" ± {decimals(spread.deviation, digits)}"
    return signed(spread.mean, digits) + deviation


def number(spread: Spread) -> str:
    """A count over seeds, ``12.7 ± 1.2``; of one seed ``13``."""
    return f"{spread.mean:g}" if spread.deviation is None else f"{spread.mean:.1f} ± {spread.deviation:.1f}"


def counted(count: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
