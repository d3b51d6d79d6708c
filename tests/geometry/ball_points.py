"""Points of the ball to test with.

How far out a point is, is said by the scaled distance s = √c · d(0, x): |x| = tanh(s/2)/√c, whatever c.
"""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st
from torch import Tensor

CURVATURES = (1e-3, 0.3, 1.0, 10.0)


def at_distance(direction: Tensor, s: float | Tensor, c: float) -> Tensor:
    """The points in the given directions [..., d] at scaled distance s from the origin."""
    unit = torch.nn.functional.normalize(direction.double(), dim=-1)
    radius = torch.tanh(torch.as_tensor(s, dtype=torch.float64) / 2) / math.sqrt(c)
    return (unit * radius).to(direction.dtype)


def random_points(n: int, d: int, c: float, farthest: float, dtype: torch.dtype, seed: int) -> Tensor:
    """n points [n, d], their scaled distances uniform up to `farthest`, the last one exactly there."""
    generator = torch.Generator().manual_seed(seed)
    directions = torch.randn(n, d, dtype=dtype, generator=generator)
    s = farthest * torch.rand(n, 1, dtype=torch.float64, generator=generator)
    s[-1] = farthest
    return at_distance(directions, s, c)


curvatures = st.sampled_from(CURVATURES)
dimensions = st.integers(1, 5)


@st.composite
def vectors(draw: st.DrawFn, d: int, largest: float) -> Tensor:
    """A float64 vector [d] of entries up to `largest`, zeros included."""
    entries = st.floats(-largest, largest, allow_subnormal=False)
    return torch.tensor(draw(st.lists(entries, min_size=d, max_size=d)), dtype=torch.float64)


@st.composite
def points(draw: st.DrawFn, d: int, c: float, farthest: float = 8.0) -> Tensor:
    """A float64 point [d] at a scaled distance up to `farthest`, the origin included."""
    return at_distance(draw(vectors(d, 1.0)), draw(st.floats(0, farthest)), c)


@st.composite
def balls(draw: st.DrawFn, n: int, farthest: float = 8.0) -> tuple[float, list[Tensor]]:
    """A curvature and n points of its ball, all of one dimension."""
    c, d = draw(curvatures), draw(dimensions)
    return c, [draw(points(d, c, farthest)) for _ in range(n)]
