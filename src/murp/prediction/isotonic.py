"""Isotonic regression: the non-decreasing function nearest to some numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murp.prediction.probability import Floats


@dataclass(frozen=True)
class Steps:
    """A non-decreasing function given by its values (m) at ascending places (m): straight between, level outside."""

    places: list[float]
    values: list[float]

    @classmethod
    def from_lists(cls, places: list[Any], values: list[Any]) -> Steps:
        """From what a file holds; a ValueError if that is no such function."""
        for numbers in (places, values):
            if not numbers or not all(isinstance(number, float) and math.isfinite(number) for number in numbers):
                raise ValueError("its steps are not all finite numbers")
        if len(places) != len(values) or sorted(places) != places or sorted(values) != values:
            raise ValueError("its steps do not ascend")
        return cls(places, values)

    def at(self, x: Floats) -> Floats:
        """Its values at x, of any shape."""
        return np.asarray(np.interp(x, self.places, self.values), dtype=np.float64)


def isotonic(scores: Floats, true: NDArray[np.bool_], weights: Floats) -> Steps:
    """The share of the true as a non-decreasing function of the score, weighted least squares.

    Equal scores count as one place. Values are kept 1/(n₋ + 2) from 0 and 1/(n₊ + 2) from 1, since so many false and
    true cases cannot show more than that. Only the two ends of each level are stored.
    """
    from scipy.optimize import isotonic_regression  # what reads a fitted map need not wait for it

    places, group = np.unique(scores, return_inverse=True)
    masses = np.bincount(group, weights=weights).astype(np.float64)
    values = isotonic_regression(np.bincount(group, weights=weights * true) / masses, weights=masses).x
    positives = (weights * true).sum()
    values = values.clip(1 / (weights.sum() - positives + 2), (positives + 1) / (positives + 2))
    level = np.diff(values) == 0
    inner = np.append(False, level) & np.append(level, False)
    return Steps(places[~inner].tolist(), values[~inner].tolist())
