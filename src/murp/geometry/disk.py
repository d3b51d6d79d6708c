"""What a picture of the plane or the Poincaré disk is drawn with: shortest paths, circles, moving the centre.

Moving a point p of the disk to the middle is :func:`murp.geometry.poincare.recentre`, the Möbius translation
x ↦ (-p) ⊕ x: an isometry, so nothing but the point of view changes.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from murp.geometry.poincare import squared_norm
from murp.geometry.spaces import Geometry


def geodesic(geometry: Geometry, x: Tensor, y: Tensor, steps: int) -> Tensor:
    """exp_x(t log_x(y)) for ``steps`` values of t from 0 to 1: points (…, d) and (…, d) → (…, steps, d).

    The points are equally far apart in the geometry. In the Poincaré disk they lie on the circle through x and y
    that meets the boundary at right angles, or on a diameter; in Euclidean space on the segment from x to y.
    """
    t = torch.linspace(0, 1, steps, dtype=x.dtype, device=x.device)[:, None]
    start = x.unsqueeze(-2)
    return geometry.exp(start, t * geometry.log(start, y.unsqueeze(-2)))


def euclidean_circle(centre: Tensor, radius: Tensor, *, c: float) -> tuple[Tensor, Tensor]:
    """The sphere {x : d(x, centre) = radius} of the ball as the Euclidean sphere it is: its middle and its radius.

    With t = tanh(√c radius/2), p the hyperbolic centre and D = 1 - c|p|²t²:

        middle = (1 - t²)/D · p,   Euclidean radius = (1 - c|p|²)/D · t/√c

    Shapes: (…, d) and (…) → (…, d) and (…). The middle lies nearer the origin than the centre.
    """
    t = torch.tanh(math.sqrt(c) * radius / 2)[..., None]
    norm = c * squared_norm(centre)
    denominator = 1 - norm * t * t
    middle = (1 - t * t) / denominator * centre
    return middle, ((1 - norm) / denominator * t / math.sqrt(c)).squeeze(-1)
