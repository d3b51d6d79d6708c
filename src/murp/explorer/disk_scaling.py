"""Distances scaled so that a picture fills the disk.

In many dimensions all entities are about equally far from any point, and would be drawn as a ring.

A picture of a ball draws the distance d at tanh(√c d/2), of Euclidean space at d/(1 + d). Here the distance is first
measured from where the nearest entities are and in a unit of its own, so that entities take up the disk from its middle
to its rim. The order of distances stays true, and so does their proportion beyond the part that was cut out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murp.geometry import MobiusGeometry

RIM = {False: 0.94, True: 0.86}  # drawn radius of the farthest but one in a hundred: in the ball, and flat
EMPTY = 0.25  # of the way to there: a smaller empty middle is left as it is


@dataclass(frozen=True)
class DiskScaling:
    """A distance d is drawn as if it were ``scale`` · (d - ``cut``)."""

    scale: float = 1.0
    cut: float = 0.0


def find_scaling(geometry: MobiusGeometry, distances: NDArray[np.float64], *, from_origin: bool) -> DiskScaling:
    """The scaling of a picture with these distances (N,) from its middle. Around an entity nothing is cut out."""
    far = float(np.quantile(distances, 0.99))
    if far <= 0:
        return DiskScaling()
    least = 0.97 * float(distances.min())
    cut = least if from_origin and least > EMPTY * far else 0.0
    rim = RIM[geometry.is_flat]
    wanted = rim / (1 - rim) if geometry.is_flat else 2 * math.atanh(rim) / math.sqrt(geometry.c)
    scale = wanted / max(far - cut, 1e-12)
    return DiskScaling(scale if cut else max(scale, 1.0), cut)


def scaled(
    geometry: MobiusGeometry, positions: NDArray[np.float64], distances: NDArray[np.float64], scaling: DiskScaling
) -> NDArray[np.float64]:
    """Positions (N, 2) at these distances (N,) from the middle, moved along their directions."""
    new = scaling.scale * np.maximum(distances - scaling.cut, 0.0)
    radius = new if geometry.is_flat else np.tanh(math.sqrt(geometry.c) * new / 2)
    length = np.linalg.norm(positions, axis=1)
    moved: NDArray[np.float64] = positions * (radius / np.maximum(length, 1e-300))[:, None]
    return moved
