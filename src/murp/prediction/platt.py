"""Platt's map from score and place to a probability: logistic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murp.errors import NotFiniteError
from murp.prediction.probability import Floats, sigmoid

# Every choice of features (φ, ln place), the constant apart, and the sign that each must have.
_CHOICES: tuple[list[int], ...] = ([0, 1], [0], [1], [])
_SIGNS = np.array([1, -1])


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
    where the scores part the two completely. The loss is convex: the best of what the signs allow is the best with
    some features left out, and there are four ways to do that.
    """
    positives, negatives = true.sum(), (~true).sum()
    targets = np.where(true, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    features = np.column_stack([scores, np.log(places)])
    # Standardised, the Hessian is well conditioned.
    mean = features.mean(0)
    spread = features.std(0)
    spread[spread == 0] = 1.0
    features = (features - mean) / spread
    fits = ((choice, *logistic(features[:, choice], targets)) for choice in _CHOICES)
    allowed = [(loss, choice, found) for choice, found, loss in fits if (found[:-1] * _SIGNS[choice] >= 0).all()]
    _, choice, found = min(allowed, key=lambda one: one[0])
    weights = np.zeros(2)
    weights[choice] = found[:-1] / spread[choice]
    return Platt(float(weights[0]), float(-weights[1]), float(found[-1] - weights @ mean))


def logistic(features: Floats, targets: Floats) -> tuple[Floats, float]:
    """The weights (d + 1), the constant last, that minimise the mean log loss, by Newton's method; and that loss."""
    x = np.column_stack([features, np.ones(len(features))])

    def loss(of: Floats) -> float:
        z = x @ of
        return float(np.mean(np.logaddexp(0, z) - targets * z))

    weights = np.zeros(x.shape[1])
    for _ in range(100):
        p = sigmoid(x @ weights)
        gradient = x.T @ (p - targets) / len(p)
        hessian = (x * (p * (1 - p))[:, None]).T @ x / len(p) + 1e-12 * np.eye(x.shape[1])
        step = np.linalg.solve(hessian, gradient)
        before, size = loss(weights), 1.0
        while loss(weights - size * step) > before and size > 1e-10:
            size /= 2
        weights = weights - size * step
        if np.abs(size * step).max() < 1e-9:
            return weights, loss(weights)
    raise NotFiniteError("no probabilities can be fitted to these scores. Use another checkpoint, or train again.")
