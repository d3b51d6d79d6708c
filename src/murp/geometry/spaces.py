"""The geometries a model can live in, behind one interface.

Models and optimisers know :class:`Geometry` alone; the mathematics is in the pure functions of
:mod:`murp.geometry.poincare` and :mod:`murp.geometry.euclidean`. The last axis of a tensor is the vector
axis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import euclidean, poincare


class Geometry(Protocol):
    """What a space offers. Shapes: points and tangent vectors [..., d]; distances [...]."""

    @property
    def name(self) -> str:
        """Short name, as in configurations."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x ⊕ y: the translation of the space that takes 0 to x, applied to y."""

    def stretch(self, m: Tensor, x: Tensor) -> Tensor:
        """diag(m) ⊗ x: the diagonal matrix applied in the tangent space at 0."""

    def exp0(self, v: Tensor) -> Tensor:
        """The point reached from 0 with velocity v."""

    def exp0_scale(self, vv: Tensor) -> Tensor:
        """κ(|v|²) with exp0(v) = κ v, from |v|² alone."""

    def log0(self, x: Tensor) -> Tensor:
        """The velocity that leads from 0 to x."""

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The point reached from x with velocity v."""

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The velocity that leads from x to y."""

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        """d(x, y)."""

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        """d(x, y)², smooth also at x = y."""

    def conformal_factor(self, x: Tensor) -> Tensor:
        """λ_x [..., 1]: the metric at x is λ_x² times the Euclidean one."""

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        """The gradient in the metric at x from the Euclidean one."""

    def contains(self, x: Tensor) -> Tensor:
        """Whether x is a point of the space [...]: what is NaN or infinite is none."""

    def project(self, x: Tensor) -> Tensor:
        """The nearest allowed point; allowed points are returned unchanged."""

    def recentre(self, x: Tensor, centre: Tensor) -> Tensor:
        """x after the isometry that moves `centre` to 0."""

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        """project(exp(x, -lr · riemannian_gradient(x, gradient))): one step of (Riemannian) SGD on rows."""

    def squared_distance_from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        """d(x, y)² from inner products that broadcast."""

    def squared_distance_to_sum_from_products(
        self, xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
    ) -> Tensor:
        """d(x, v ⊕ r)² from inner products that broadcast."""

    def squared_norm_of_sum_from_products(self, vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
        """|v ⊕ r|² from inner products that broadcast."""


@dataclass(frozen=True)
class PoincareBall:
    """The ball {x : c|x|² < 1} of curvature -c, as in the paper (there c = 1)."""

    c: float = 1.0
    name: ClassVar[str] = "poincare"

    def __post_init__(self) -> None:
        if not (self.c > 0 and math.isfinite(self.c)):
            raise ConfigError(
                f"the curvature c of the Poincaré ball is {self.c}: it must be a positive number "
                "(for flat space use the Euclidean geometry)"
            )

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return poincare.mobius_add(x, y, c=self.c)

    def stretch(self, m: Tensor, x: Tensor) -> Tensor:
        return poincare.mobius_diagonal(m, x, c=self.c)

    def exp0(self, v: Tensor) -> Tensor:
        return poincare.exp0(v, c=self.c)

    def exp0_scale(self, vv: Tensor) -> Tensor:
        return poincare.exp0_scale(vv, c=self.c)

    def log0(self, x: Tensor) -> Tensor:
        return poincare.log0(x, c=self.c)

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return poincare.exp(x, v, c=self.c)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return poincare.log(x, y, c=self.c)

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        return poincare.distance(x, y, c=self.c)

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        return poincare.squared_distance(x, y, c=self.c)

    def conformal_factor(self, x: Tensor) -> Tensor:
        return poincare.conformal_factor(x, c=self.c)

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return poincare.riemannian_gradient(x, gradient, c=self.c)

    def contains(self, x: Tensor) -> Tensor:
        return poincare.contains(x, c=self.c)

    def project(self, x: Tensor) -> Tensor:
        return poincare.project(x, c=self.c)

    def recentre(self, x: Tensor, centre: Tensor) -> Tensor:
        return poincare.recentre(x, centre, c=self.c)

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        return poincare.step(x, gradient, lr, c=self.c)

    def squared_distance_from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return poincare.squared_distance_from_products(xx, yy, xy, c=self.c)

    def squared_distance_to_sum_from_products(
        self, xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
    ) -> Tensor:
        return poincare.squared_distance_to_sum_from_products(xx, vv, rr, xv, xr, vr, c=self.c)

    def squared_norm_of_sum_from_products(self, vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
        return poincare.squared_norm_of_sum_from_products(vv, rr, vr, c=self.c)


@dataclass(frozen=True)
class Euclidean:
    """Flat space."""

    name: ClassVar[str] = "euclidean"

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def stretch(self, m: Tensor, x: Tensor) -> Tensor:
        return m * x

    def exp0(self, v: Tensor) -> Tensor:
        return v

    def exp0_scale(self, vv: Tensor) -> Tensor:
        return torch.ones_like(vv)

    def log0(self, x: Tensor) -> Tensor:
        return x

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return x + v

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return y - x

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        return euclidean.distance(x, y)

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        return euclidean.squared_distance(x, y)

    def conformal_factor(self, x: Tensor) -> Tensor:
        return euclidean.conformal_factor(x)

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return gradient

    def contains(self, x: Tensor) -> Tensor:
        return euclidean.contains(x)

    def project(self, x: Tensor) -> Tensor:
        return x

    def recentre(self, x: Tensor, centre: Tensor) -> Tensor:
        return x - centre

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        return x - lr * gradient

    def squared_distance_from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        return euclidean.squared_distance_from_products(xx, yy, xy)

    def squared_distance_to_sum_from_products(
        self, xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
    ) -> Tensor:
        return euclidean.squared_distance_to_sum_from_products(xx, vv, rr, xv, xr, vr)

    def squared_norm_of_sum_from_products(self, vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
        return euclidean.squared_norm_of_sum_from_products(vv, rr, vr)
