"""Rank correlation.

Not scipy's: loading ``scipy.stats`` made ``murp analyze --run`` on wordnet-mini take 3.0 s of processor time instead of
2.3 s, and its ``spearmanr`` takes 1.4 times as long at 41,000 pairs, 3.5 times at 11. The results agree to 1e-15.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Correlation:
    """Spearman's ρ over ``n`` pairs; None if one side has no two different values, as then nothing is ordered."""

    rho: float | None
    n: int


def spearman(x: ArrayLike, y: ArrayLike) -> Correlation:
    """Pearson's correlation of the ranks of x (n,) and y (n,), equal values at their mean rank."""
    ranks = np.stack([mean_ranks(np.asarray(values)) for values in (x, y)])
    centred = ranks - ranks.mean(axis=1, keepdims=True) if ranks.size else ranks
    scale = np.sqrt(np.prod((centred**2).sum(axis=1)))
    rho = float(np.clip(centred[0] @ centred[1] / scale, -1, 1)) if scale > 0 else None
    return Correlation(rho, ranks.shape[1])


def mean_ranks(values: NDArray[np.generic]) -> NDArray[np.float64]:
    """(n,) ranks from 1 on, ascending; equal values share the mean of the ranks they take up."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[which.reshape(-1)]
    return ranks
