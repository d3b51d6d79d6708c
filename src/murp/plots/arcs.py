"""Edges as lines of the picture: the geodesics between points of the unit disk or of the plane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from murp.geometry import MobiusGeometry
from murp.geometry.disk import geodesic
from murp.plots.layout import in_unit_disk

POINTS = 25  # of an arc


def arcs(geometry: MobiusGeometry, heads: Tensor, tails: Tensor) -> NDArray[np.float64]:
    """Geodesics between points (E, 2) of the geometry's plane, in the unit disk of the picture: (E, POINTS, 2)."""
    if geometry.is_flat:
        return in_unit_disk(geometry, geodesic(geometry, heads, tails, POINTS))
    return disk_arcs(in_unit_disk(geometry, heads), in_unit_disk(geometry, tails))


def disk_arcs(heads: NDArray[np.float64], tails: NDArray[np.float64]) -> NDArray[np.float64]:
    """Arcs of the circles through p and q that meet the unit circle at right angles: (E, 2) twice → (E, POINTS, 2).

    With p and q as complex numbers, θ = arg(1 - p̄q) is the angle between such a circle and the chord from p to q, so

        z(s) = p + (q - p) · sin(sθ)/sin θ · exp(i(s - 1)θ),   0 ≤ s ≤ 1

    goes round it evenly: n pieces stay within ρ(1 - cos(θ/n)) of a circle of radius ρ, which for 24 is never more
    than 6/10,000 of the disk's radius, half a pixel of a page's. Points equally far apart in the geometry, as those of
    :func:`murp.geometry.disk.geodesic`, crowd at the rim and leave corners in the middle.
    """
    p, q = (np.ascontiguousarray(ends).view(np.complex128) for ends in (heads, tails))  # (E, 1)
    angle = np.angle(1 - p.conj() * q)
    s = np.linspace(0, 1, POINTS)
    share = s * np.sinc(s * angle / np.pi) / np.sinc(angle / np.pi)
    drawn: NDArray[np.complex128] = p + (q - p) * share * np.exp(1j * (s - 1) * angle)
    return drawn.view(np.float64).reshape(*drawn.shape, 2)
