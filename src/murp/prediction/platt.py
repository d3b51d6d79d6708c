"""Platt's map from score and place to a probability: logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murp.errors import NotFiniteError
from murp.prediction.probability import Floats, sigmoid


@dataclass(frozen=True)
class Platt:
    """Log-odds aφ - c ln(place) + b with a, c ≥ 0: what scores higher, or stands higher, is never less probable."""

    slope: float
    fall: float
    intercept: float

    def log_odds(self, scores: ArrayLike, places: ArrayLike) -> Floats:
        """Of scores and places of any shape."""
        return np.asarray(self.slope * np.asarray(scores) - self.fall * np.log(places) + self.intercept, np.float64)


def fit(scores: Floats, places: Floats, true: NDArray[np.bool_]) -> Platt:
    """The a, c ≥ 0 and b that minimise the log loss of σ(aφ - c ln(place) + b).

    As Platt does, the targets are (n₊ + 1)/(n₊ + 2) for facts and 1/(n₋ + 2) for the others, so that the minimum exists
    where the scores part the two completely.
    """
    from scipy.optimize import minimize  # what reads a fitted map need not wait for it

    positives, negatives = true.sum(), (~true).sum()
    targets = np.where(true, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    features = np.column_stack([scores, -np.log(places)])
    # Standardised, the loss is well conditioned.
    mean = features.mean(0)
    spread = features.std(0)
    # The mean of equal values is rounded, so their spread need not be 0: what varies by rounding alone has no slope.
    spread[spread <= 1e-10 * np.abs(features).max(0)] = np.inf
    x = np.column_stack([(features - mean) / spread, np.ones(len(features))])

    def loss_and_gradient(weights: Floats) -> tuple[float, Floats]:
        z = x @ weights
        return float(np.mean(np.logaddexp(0, z) - targets * z)), x.T @ (sigmoid(z) - targets) / len(z)

    bounds = [(0, None), (0, None), (None, None)]
    options = {"ftol": 0.0, "gtol": 1e-10}  # the gradient decides: near the minimum the loss itself is rounding
    found = minimize(loss_and_gradient, np.zeros(3), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    if not _is_minimum(found.x, found.jac):
        raise NotFiniteError("no probabilities can be fitted to these scores. Use another checkpoint, or train again.")
    slope, fall = (found.x[:2] / spread).tolist()
    return Platt(slope, fall, float(found.x[2] - np.array([slope, fall]) @ mean))


def _is_minimum(weights: Floats, gradient: Floats) -> bool:
    """Whether the loss falls in no allowed direction, but for rounding: at its bound a weight may only grow."""
    falls = np.where((np.arange(3) < 2) & (weights == 0), np.minimum(gradient, 0), gradient)
    return bool(np.abs(falls).max() < 1e-6)
