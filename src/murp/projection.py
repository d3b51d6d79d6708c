"""From d dimensions to two: the positions of entities in the explorer and in the plots.

Positions of a ball are in the unit disk. Those of Euclidean space are in the plane; pictures draw them at
z/(1 + |z|), so that both fit the same picture.

    distances   seen from a centre: the distance of a point from the middle is its true distance d from the centre,
                drawn at tanh(√c d/2) in the ball; its angle is that of its direction in the plane that holds most
                of the directions of the nearest points. A model of two dimensions is drawn as it is.
    paper       the paper's appendix 'Dimensionality reduction method': x = ⟨e, s⟩/|s| along the subject s,
                y = √(|e|² - x²), the rest. Norms, and distances to the subject, which lands on (|s|, 0), are those of
                the d dimensions, in the ball too; distances between objects are not.

Everything comes from inner products in float64, which is several times as fast as moving all points. A distance close
to 0 and a y close to 0 are off by 10⁻⁸ of the norms: no picture shows that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import Geometry, MobiusGeometry
from murp.geometry.poincare import mobius_add_coefficients, set_back_radius
from murp.models import MultiRelational
from murp.models.model import squared_norm

Projection = Literal["distances", "paper"]
NEAR = 200  # points that choose the plane


@dataclass(frozen=True)
class Picture:
    """Points around a centre: ``positions`` (N, 2), true ``distances`` (N,) from it, and the plane's axes (2, d)."""

    positions: NDArray[np.float64]
    distances: NDArray[np.float64]
    axes: Tensor


@dataclass(frozen=True)
class Question:
    """Objects (N, 2) and subject (2,) before and after a relation moves them."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    subject_before: NDArray[np.float64]
    subject_after: NDArray[np.float64]


class Points:
    """Points (N, d) of a geometry in float64 with their squared norms, seen from one centre after another.

    Only inner products with the centre and with two axes are needed: no N × d tensor is made a view.
    """

    def __init__(self, geometry: Geometry, rows: Tensor) -> None:
        if not isinstance(geometry, MobiusGeometry):
            raise ConfigError(
                "there are pictures of the Poincaré ball and of Euclidean space, and this model's points lie in "
                f"another space ({geometry.name}). `murp export` gives them as numbers."
            )
        self.geometry = geometry
        self.rows = rows.double()
        self.squares = squared_norm(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, vectors: Tensor) -> Tensor:
        """⟨x,w⟩ of all points and k vectors (k, d) → (N, k)."""
        return self.rows @ vectors.T

    def some(self, indices: Tensor) -> Tensor:
        """The points at these indices (n) → (n, d)."""
        return self.rows[indices]

    @torch.no_grad()
    def around(self, centre: Tensor, *, near: int | None = NEAR, axes: Tensor | None = None) -> Picture:
        """The picture that ``centre`` (d,) sees, in the plane of ``axes`` (2, d), or of the ``near`` nearest points."""
        centre = centre.double()
        square = squared_norm(centre)
        products = self.products(centre[None])[:, 0]
        distances = self.geometry.squared_distance_from_products(square, self.squares, products).sqrt()
        if axes is None:
            count = len(self) if near is None else min(near, len(self))
            chosen = torch.topk(distances, count, largest=False, sorted=False).indices
            axes = _axes(self.geometry.recentre(self.some(chosen), centre))
        along, own = self.products(axes), axes @ centre
        radius = distances
        if not self.geometry.is_flat:
            c = self.geometry.c
            of_centre, of_points, _ = mobius_add_coefficients(square, self.squares, -products, c=c)
            plane = of_points * along - of_centre[:, None] * own  # a positive multiple of (-m) ⊕ x
            radius = torch.tanh(math.sqrt(c) * distances / 2)
        else:
            plane = along - own
        plane = torch.nn.functional.pad(plane, (0, 2 - plane.shape[1]))
        length = torch.linalg.vector_norm(plane, dim=1)
        positions = plane * (radius / length.clamp(min=1e-300))[:, None]
        # Straight behind the plane, and yet at a distance: any angle is as good as another.
        positions[length == 0, 0] = radius[length == 0]
        return Picture(positions.cpu().numpy(), distances.cpu().numpy(), axes)

    @torch.no_grad()
    def along(self, subject: Tensor) -> NDArray[np.float64]:
        """The paper's projection along a subject (d,)."""
        subject = subject.double()
        x = self.products(subject[None] / torch.linalg.vector_norm(subject).clamp(min=1e-300))[:, 0]
        y = (self.squares - x * x).clamp(min=0).sqrt()
        scale = math.sqrt(self.geometry.c) if not self.geometry.is_flat else 1.0
        return scale * torch.stack([x, y], dim=1).cpu().numpy()


class Translated(Points):
    """x ⊕ r for all points x and one r (d,), as multiples of x and r: no point is computed before it is asked for."""

    def __init__(self, points: Points, r: Tensor) -> None:
        self.geometry = points.geometry
        self.rows = points.rows
        self.r = r.double()
        xx, xr, rr = points.squares, points.products(self.r[None])[:, 0], squared_norm(self.r)
        self.squares = self.geometry.squared_norm_of_sum_from_products(xx, rr, xr)
        self.of_x = self.of_r = torch.ones_like(xx)
        if not self.geometry.is_flat:
            c = self.geometry.c
            of_x, of_r, both = mobius_add_coefficients(xx, rr, xr, c=c)
            self.of_x, self.of_r = of_x / both, of_r / both
            # Rounding must not put a point onto the rim, from which everything is infinitely far.
            self.squares.clamp_(max=set_back_radius(torch.float64) ** 2 / c)

    def products(self, vectors: Tensor) -> Tensor:
        return self.of_x[:, None] * super().products(vectors) + self.of_r[:, None] * (vectors @ self.r)

    def some(self, indices: Tensor) -> Tensor:
        return self.of_x[indices, None] * self.rows[indices] + self.of_r[indices, None] * self.r


@torch.no_grad()
def question(model: MultiRelational, points: Points, subject: int, relation: int, how: Projection) -> Question:
    """Objects and a subject before (e) and after (e^(r)) the relation's transformation.

    Seen by distances, before and after are drawn in one plane, that of the moved objects.
    """
    row = model.rows("relation", torch.tensor([relation], device=model.device))
    own = model.parameters["entity"][subject].double()
    moved_own = model.move_subject(own[None], row)[0]
    moved: Points
    if not isinstance(model, MultiRelational) or model.parts.stretch_object:
        moved = Points(model.geometry, model.move_object(points.rows, row))
    else:
        moved = Translated(points, row["translation"][0]) if model.parts.translate_object else points
    if how == "paper":
        subjects = [Points(model.geometry, s[None]).along(s)[0] for s in (own, moved_own)]
        return Question(points.along(own), moved.along(moved_own), *subjects)
    after = moved.around(moved_own)
    before = points.around(own, axes=after.axes)
    return Question(before.positions, after.positions, np.zeros(2), np.zeros(2))


def _axes(recentred: Tensor) -> Tensor:
    """Two orthonormal directions (2, d) that spread the points most; the coordinates' own where d ≤ 2."""
    d = recentred.shape[-1]
    if d <= 2:
        return torch.eye(d, dtype=torch.float64, device=recentred.device)
    directions = recentred / torch.linalg.vector_norm(recentred, dim=-1, keepdim=True).clamp(min=1e-12)
    directions = directions - directions.mean(0)
    axes: Tensor = torch.linalg.eigh(directions.T @ directions).eigenvectors[:, [-1, -2]].T
    # An eigenvector's sign is arbitrary; the same view must look the same on the next day.
    largest = axes.gather(1, axes.abs().argmax(1, keepdim=True))
    return axes * largest.sign()
