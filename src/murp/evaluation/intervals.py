"""95 % intervals of metrics of ranks among sampled candidates.

An interval is for the mean over all facts of which these are a sample, and over all draws of candidates: a fact with
its two questions is one observation, and every question has its own candidates.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from murp.evaluation.comparison import bootstrap

FEW = 2000  # facts: of more, the quantile of the bootstrap is that of the normal distribution
RESAMPLES = 2000
NORMAL = 1.959964

Interval = tuple[float, float]


def intervals(ranks: NDArray[np.float64], hits: Iterable[int]) -> dict[str, Interval | None]:
    """Of the MRR and of each Hits@k of ranks (n, 1 or 2), a row for each fact; None if one fact, or equal ones, leave
    nothing to judge an MRR by.

    For the MRR of many facts mean ± 1.96 standard errors, of few the studentized bootstrap of
    :mod:`murp.evaluation.comparison`. For Hits@k, which may be 0 of all facts, Wilson's interval.
    """
    if len(ranks) == 0:
        return dict.fromkeys(["mrr", *(f"hits@{k}" for k in hits)])
    found: dict[str, Interval | None] = {"mrr": _of_mean((1 / ranks).mean(axis=1))}
    return found | {f"hits@{k}": _of_share((ranks <= k).mean(axis=1)) for k in hits}


def _of_mean(values: NDArray[np.float64]) -> Interval | None:
    """Of the mean of a number in [0, 1] for each fact."""
    if len(values) > FEW:
        if values.min() == values.max():
            return None  # as the bootstrap has it: there is nothing to judge by
        half = NORMAL * float(values.std(ddof=1)) / len(values) ** 0.5
        return max(float(values.mean()) - half, 0.0), min(float(values.mean()) + half, 1.0)
    low, high, *_ = bootstrap(values, RESAMPLES, np.random.default_rng(0))
    return None if low is None or high is None else (max(low, 0.0), min(high, 1.0))


def _of_share(values: NDArray[np.float64]) -> Interval:
    """Wilson's interval of a share p of questions, two of each of n facts: they count as n independent ones, and as up
    to 2n where the two of a fact differ: p(1 - p)/s² times n, with the variance s² of facts."""
    p, spread = float(values.mean()), float(values.var(ddof=1)) if len(values) > 1 else 0.0
    number = len(values) * (min(2.0, max(1.0, p * (1 - p) / spread)) if spread > 0 else 1.0)
    unit = NORMAL**2 / number
    centre, half = p + unit / 2, (unit * (p * (1 - p) + unit / 4)) ** 0.5
    return max((centre - half) / (1 + unit), 0.0), min((centre + half) / (1 + unit), 1.0)
