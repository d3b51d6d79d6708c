"""How soon runs are near their best, by the epochs at which they were validated."""

from __future__ import annotations

import math
from typing import Any

from murp.paper.evidence import Evidence, Spread


def validated_every(evidence: Evidence, item: dict[str, Any]) -> int:
    """How many epochs apart the runs of an item were validated."""
    return int(evidence.run(item["cells"][0]["runs"][0])["settings"]["validate_every"])


def near(evidence: Evidence, cell: dict[str, Any], share: float) -> Spread:
    """The first validated epoch of a cell's runs at which MRR on valid is ``share`` of the run's best."""
    return evidence.over(cell, lambda run: first_at(run, share * best_on_valid(run)))


def best_on_valid(run: dict[str, Any]) -> float:
    """The highest MRR on valid that a run ever has."""
    return float(max(mrr for _, mrr in run["valid_curve"]))


def first_at(run: dict[str, Any], level: float) -> float:
    """The first validated epoch at which a run's MRR on valid is ``level`` or more; infinity where it never is."""
    return float(next((epoch for epoch, mrr in run["valid_curve"] if mrr >= level), math.inf))


def epochs(spread: Spread) -> str:
    """``180 ± 20``."""
    if spread.n == 0:
        return "diverged"
    if math.isinf(spread.mean):
        return "never"
    return f"{spread.mean:.0f}" if spread.deviation is None else f"{spread.mean:.0f} ± {spread.deviation:.0f}"
