"""Probabilities from scores, and how good they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def sigmoid(x: Floats) -> Floats:
    """σ(x) = 1/(1 + e⁻ˣ), without overflow."""
    e = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, e) / (1 + e), dtype=np.float64)


def brier(probabilities: Floats, true: NDArray[np.bool_]) -> float:
    """The mean of (p - t)², t = 1 for facts and 0 for the others: 0 at best, .25 for always saying ½."""
    return float(np.mean((probabilities - true) ** 2))


def log_loss(probabilities: Floats, true: NDArray[np.bool_]) -> float:
    """The mean of -log of the probability given to what was the case; infinite where that was 0."""
    given = np.where(true, probabilities, 1 - probabilities)
    with np.errstate(divide="ignore"):
        return float(-np.log(given).mean())


@dataclass(frozen=True)
class Bin:
    """The cases with low ≤ p < high (≤ in the last): how many, their mean p, and which share of them was true."""

    low: float
    high: float
    count: int
    predicted: float | None
    observed: float | None


def reliability(probabilities: Floats, true: NDArray[np.bool_], bins: int = 10) -> list[Bin]:
    """Cases binned by their probability into equal widths; calibrated is where predicted = observed in each."""
    place = np.minimum((probabilities * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    sums, hits = (np.bincount(place, weights=w, minlength=bins) for w in (probabilities, true))
    return [
        Bin(i / bins, (i + 1) / bins, int(n), *((float(sums[i] / n), float(hits[i] / n)) if n else (None, None)))
        for i, n in enumerate(counts)
    ]
