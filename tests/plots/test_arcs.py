"""Edges in the disk: on their geodesics everywhere, to less than a pixel."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from murp.geometry import Euclidean, PoincareBall
from murp.geometry.disk import geodesic
from murp.plots.arcs import POINTS, arcs, disk_arcs
from murp.plots.layout import in_unit_disk
from murp.plots.style import DPI, PAGE

PIXEL = 1 / (PAGE * DPI / 2)  # of a page's width, in units of the disk's radius
radii = st.floats(0, 0.99999)
angles = st.floats(-np.pi, np.pi)


def at(radius: float, angle: float) -> NDArray[np.float64]:
    return np.array([[radius * np.cos(angle), radius * np.sin(angle)]])


def deviation(line: NDArray[np.float64], fine: NDArray[np.float64]) -> float:
    """How far the points (n, 2) of a fine curve are from a line (m, 2) of straight pieces, at most."""
    start, piece = line[:-1], np.diff(line, axis=0)
    along = ((fine[:, None] - start) * piece).sum(-1) / np.maximum((piece**2).sum(-1), 1e-300)
    nearest = start + np.clip(along, 0, 1)[..., None] * piece
    return float(np.linalg.norm(fine[:, None] - nearest, axis=-1).min(1).max())


@given(radii, angles, radii, angles)
def test_an_arc_is_the_geodesic_to_half_a_pixel(r: float, a: float, s: float, b: float) -> None:
    heads, tails = at(r, a), at(s, b)
    (drawn,) = disk_arcs(heads, tails)
    assert drawn.shape == (POINTS, 2)
    assert drawn[0] == pytest.approx(heads[0], abs=1e-12)
    assert drawn[-1] == pytest.approx(tails[0], abs=1e-12)
    (true,) = geodesic(PoincareBall(), torch.from_numpy(heads), torch.from_numpy(tails), 301).numpy()
    assert deviation(drawn, true) < PIXEL / 2


@given(radii, angles, radii, angles)
def test_an_arc_goes_round_its_circle_evenly(r: float, a: float, s: float, b: float) -> None:
    (drawn,) = disk_arcs(at(r, a), at(s, b))
    lengths = np.linalg.norm(np.diff(drawn, axis=0), axis=1)
    assert lengths == pytest.approx(np.full(POINTS - 1, lengths.mean()), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("geometry", [PoincareBall(0.5), PoincareBall(4.0), Euclidean()], ids=str)
def test_edges_of_every_plane_are_its_geodesics(geometry: PoincareBall | Euclidean) -> None:
    generator = torch.Generator().manual_seed(0)
    points = 0.35 * torch.rand(40, 2, 2, dtype=torch.float64, generator=generator)
    heads, tails = points.unbind(1)
    for drawn, true in zip(
        arcs(geometry, heads, tails), in_unit_disk(geometry, geodesic(geometry, heads, tails, 99)), strict=True
    ):
        assert deviation(drawn, true) < PIXEL / 2
