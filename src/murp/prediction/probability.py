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


def brier(probabilities: Floats, true: NDArray[np.bool_], weights: Floats) -> float:
    """The weighted mean of (p - t)², t = 1 for facts and 0 for the others: 0 at best, .25 for always saying ½."""
    return float(np.average((probabilities - true) ** 2, weights=weights))


def log_loss(probabilities: Floats, true: NDArray[np.bool_], weights: Floats) -> float:
    """The weighted mean of -log of the probability given to what was the case; infinite where that was 0."""
    given = np.where(true, probabilities, 1 - probabilities)
    with np.errstate(divide="ignore"):
        return float(np.average(-np.log(given), weights=weights))


# Narrow below, where most candidates are.
EDGES = (0, 1e-5, 1e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1)


@dataclass(frozen=True)
class Bin:
    """The cases with low ≤ p < high (≤ in the last): how many, their mean p, and which share of them was true."""

    low: float
    high: float
    count: int
    predicted: float | None
    observed: float | None


def reliability(probabilities: Floats, true: NDArray[np.bool_], weights: Floats) -> list[Bin]:
    """Cases binned by their probability between ``EDGES``; calibrated is where predicted = observed in each."""
    place = np.minimum(np.searchsorted(EDGES, probabilities, side="right"), len(EDGES) - 1) - 1
    n, sums, hits = (
        np.bincount(place, weights=of, minlength=len(EDGES) - 1)
        for of in (weights, weights * probabilities, weights * true)
    )
    return [
        Bin(low, high, round(m), *((float(p / m), float(t / m)) if m else (None, None)))
        for low, high, m, p, t in zip(EDGES[:-1], EDGES[1:], n, sums, hits, strict=True)
    ]
