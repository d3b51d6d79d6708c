"""What pictures are drawn with: geodesics, circles and recentring, as laws."""

from __future__ import annotations

import math

import pytest
import torch
from ball_points import at_distance, balls, curvatures, points
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.geometry import Euclidean, PoincareBall, poincare
from murp.geometry.disk import euclidean_circle, geodesic

law = settings(max_examples=at_most(60))
STEPS = 9


@st.composite
def pairs(draw: st.DrawFn) -> tuple[float, Tensor, Tensor]:
    """A curvature and two points of its disk that are apart."""
    c = draw(curvatures)
    x, y = draw(points(2, c, 5.0)), draw(points(2, c, 5.0))
    assume(float(poincare.distance(x, y, c=c)) * math.sqrt(c) > 1e-2)
    return c, x, y


@law
@given(balls(2, farthest=5.0))
def test_a_geodesic_goes_from_end_to_end_in_equal_steps_without_detour(ball: tuple[float, list[Tensor]]) -> None:
    c, (x, y) = ball
    path = geodesic(PoincareBall(c), x, y, STEPS)
    assert path.shape == (STEPS, len(x))
    torch.testing.assert_close(path[[0, -1]] * math.sqrt(c), torch.stack([x, y]) * math.sqrt(c), rtol=0, atol=1e-9)
    steps = poincare.distance(path[:-1], path[1:], c=c) * math.sqrt(c)
    whole = float(poincare.distance(x, y, c=c)) * math.sqrt(c)
    assert steps.tolist() == pytest.approx([whole / (STEPS - 1)] * (STEPS - 1), abs=1e-6)


@law
@given(pairs())
def test_a_geodesic_of_the_disk_lies_on_a_circle_that_meets_the_boundary_at_right_angles(
    pair: tuple[float, Tensor, Tensor],
) -> None:
    """A circle of middle m and radius ρ meets the unit circle at right angles where |m|² = 1 + ρ².

    Then |p|² - 2⟨m, p⟩ + 1 = 0 for all its points p: two points give m, the others are judged by it. For a diameter,
    the limit, ⟨n, p⟩ = 0.
    """
    c, x, y = pair
    path = geodesic(PoincareBall(c), x, y, STEPS) * math.sqrt(c)
    (a, b), (d, e) = path[0].tolist(), path[-1].tolist()
    cross = a * e - b * d
    if abs(cross) < 1e-6:  # with the origin on one line: a diameter
        normal = torch.tensor([b - e, d - a], dtype=torch.float64)
        assert (path @ normal / torch.linalg.vector_norm(normal)).abs().max() < 1e-4
        return
    half = [(1 + a * a + b * b) / 2, (1 + d * d + e * e) / 2]
    middle = torch.tensor([half[0] * e - half[1] * b, a * half[1] - d * half[0]], dtype=torch.float64) / cross
    residual = (path.square().sum(1) - 2 * path @ middle + 1) / torch.linalg.vector_norm(middle)
    assert residual.abs().max() < 1e-7


def test_a_geodesic_of_the_plane_is_a_segment() -> None:
    x, y = torch.tensor([[1.0, 2.0], [0.0, 0.0]]), torch.tensor([[3.0, -2.0], [4.0, 4.0]])
    path = geodesic(Euclidean(), x, y, 5)
    # Exact: halves of small whole numbers, which no operation rounds.
    assert path.tolist() == [
        [[1.0, 2.0], [1.5, 1.0], [2.0, 0.0], [2.5, -1.0], [3.0, -2.0]],
        [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [4.0, 4.0]],
    ]


@law
@given(st.data(), curvatures, st.floats(0.01, 4.0), st.floats(0, 2 * math.pi))
def test_points_of_the_euclidean_circle_are_equally_far_from_its_hyperbolic_centre(
    data: st.DataObject, c: float, scaled: float, angle: float
) -> None:
    centre, radius = data.draw(points(2, c, 4.0)), torch.tensor(scaled / math.sqrt(c), dtype=torch.float64)
    middle, euclidean = euclidean_circle(centre, radius, c=c)
    turn = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    on_circle = middle + euclidean * turn
    assert float(poincare.distance(on_circle, centre, c=c)) == pytest.approx(float(radius), rel=1e-7)


@law
@given(balls(1, farthest=4.0), st.floats(0.01, 4.0))
def test_a_circle_is_what_a_recentred_circle_about_the_origin_is(
    ball: tuple[float, list[Tensor]], scaled: float
) -> None:
    c, (centre,) = ball
    radius = torch.tensor(scaled / math.sqrt(c), dtype=torch.float64)
    middle, euclidean = euclidean_circle(centre, radius, c=c)
    directions = torch.cat([torch.eye(len(centre)), -torch.eye(len(centre))]).double()
    moved = poincare.mobius_add(centre, at_distance(directions, scaled, c), c=c)
    distances = torch.linalg.vector_norm(moved - middle, dim=1)
    assert distances.tolist() == pytest.approx([float(euclidean)] * len(distances), rel=1e-6)


def test_circles_of_many_points_at_once() -> None:
    centres = torch.tensor([[0.0, 0.0], [0.5, 0.0]], dtype=torch.float64)
    middles, radii = euclidean_circle(centres, torch.tensor([1.0, 0.0], dtype=torch.float64), c=1.0)
    assert radii.tolist() == pytest.approx([math.tanh(0.5), 0])
    torch.testing.assert_close(middles, centres)


@law
@given(balls(3, farthest=5.0))
def test_recentring_is_an_isometry_that_brings_the_centre_to_the_origin(ball: tuple[float, list[Tensor]]) -> None:
    c, (x, y, centre) = ball
    moved = poincare.recentre(torch.stack([x, y, centre]), centre, c=c)
    # Exactly: -centre + centre is 0.
    assert moved[2].abs().max() == 0
    before, after = (float(poincare.distance(*pair, c=c)) * math.sqrt(c) for pair in ((x, y), (moved[0], moved[1])))
    assert after == pytest.approx(before, abs=1e-6)
