"""What a space offers to models and optimisers, and what the curved ones share.

A space is a file of its own beside this one: the mathematics as pure functions, and a frozen dataclass that offers
them as :class:`Geometry`. The last axis of a tensor is the vector axis.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import torch
from torch import Tensor

from murp.errors import ConfigError


class Geometry(Protocol):
    """A space to train in. Shapes: points x, y and tangent vectors u, v [..., d]; distances [...].

    d is the width of a row: the hyperboloid and the sphere of n dimensions have rows of n + 1 numbers.
    """

    @property
    def name(self) -> str:
        """Short name, as in configurations."""

    @property
    def is_flat(self) -> bool:
        """Whether the space is Euclid's, where all tangent spaces are one."""

    @property
    def has_free_coordinates(self) -> bool:
        """Whether points are vectors without a constraint but their length, as in the ball and in Euclidean space.

        Not on the hyperboloid and the sphere, and not in products with a curved part.
        """

    @property
    def curvature(self) -> float | None:
        """The curvature, where it is one number: products have several."""

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        """The point reached from x with velocity v."""

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        """The velocity that leads from x to y."""

    def exp0(self, v: Tensor) -> Tensor:
        """The point reached from the origin with velocity v."""

    def log0(self, x: Tensor) -> Tensor:
        """The velocity that leads from the origin to x."""

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        """A cheap stand-in for exp(x, v): it differs in the order |v|²."""

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        """The tangent vector at y that v at x becomes by parallel transport along the geodesic."""

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        """The inner product of tangent vectors u and v in the metric at x [..., 1]."""

    def component_inner(self, x: Tensor, v: Tensor) -> Tensor:
        """What an adaptive optimiser accumulates of v: a square for each number that it scales by itself.

        Euclidean space: v² by element [..., d]. Curved spaces, where elements mean nothing: the squared length of
        v [..., 1]. Products: by part [..., d].
        """

    def component_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what :meth:`component_inner` returns for a row of ``shape``."""

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        """The gradient in the metric at x, a tangent vector, from the Euclidean one."""

    def project(self, x: Tensor) -> Tensor:
        """The nearest allowed point; allowed points are returned unchanged."""

    def project_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        """The tangent vector at x nearest v."""

    def contains(self, x: Tensor) -> Tensor:
        """Whether x is a point of the space [...], to rounding: what is NaN or infinite is none."""

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        """d(x, y)."""

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        """d(x, y)², smooth also at x = y."""

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        """project(exp(x, -lr · riemannian_gradient(x, gradient))): one step of (Riemannian) SGD on rows."""

    def origin(self, dim: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
        """The point that all others are drawn around, a row of ``dim`` numbers.

        It is made on ``device``: a step that is captured in a CUDA graph cannot copy it there.
        """

    def random(
        self, generator: torch.Generator, shape: tuple[int, ...], scale: float, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        """Points near the origin, a tensor of ``shape``: each coordinate normal with standard deviation ``scale``.

        The ball and Euclidean space draw the point itself, the others the velocity that leads to it.
        """


@runtime_checkable
class MobiusGeometry(Geometry, Protocol):
    """A space with an addition, a translation that takes 0 to any point: the ball of curvature -c, or Euclid's.

    Its points are vectors without a constraint but their length, and its distances follow from inner products alone.
    """

    @property
    def c(self) -> float:
        """The curvature is -c; 0 in Euclidean space."""

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x ⊕ y: the translation of the space that takes 0 to x, applied to y."""

    def stretch(self, m: Tensor, x: Tensor) -> Tensor:
        """diag(m) ⊗ x: the diagonal matrix applied in the tangent space at 0."""

    def exp0_scale(self, vv: Tensor) -> Tensor:
        """κ(|v|²) with exp0(v) = κ v, from |v|² alone."""

    def conformal_factor(self, x: Tensor) -> Tensor:
        """λ_x [..., 1]: the metric at x is λ_x² times the Euclidean one."""

    def recentre(self, x: Tensor, centre: Tensor) -> Tensor:
        """x after the isometry that moves `centre` to 0."""

    def squared_distance_from_products(self, xx: Tensor, yy: Tensor, xy: Tensor) -> Tensor:
        """d(x, y)² from inner products that broadcast."""

    def squared_distance_to_sum_from_products(
        self, xx: Tensor, vv: Tensor, rr: Tensor, xv: Tensor, xr: Tensor, vr: Tensor
    ) -> Tensor:
        """d(x, v ⊕ r)² from inner products that broadcast."""

    def squared_norm_of_sum_from_products(self, vv: Tensor, rr: Tensor, vr: Tensor) -> Tensor:
        """|v ⊕ r|² from inner products that broadcast."""


class Curved(ABC):
    """What the spaces of curvature -c or c share: c > 0, and one accumulated number for a whole tangent vector."""

    c: float
    in_words: ClassVar[str]
    is_flat: ClassVar[bool] = False
    has_free_coordinates: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (self.c > 0 and math.isfinite(self.c)):
            raise ConfigError(
                f"the curvature c of the {self.in_words} is {self.c}: it must be a positive number "
                "(for flat space use the Euclidean geometry)"
            )

    @property
    def curvature(self) -> float:
        return -self.c

    @abstractmethod
    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor: ...

    def component_inner(self, x: Tensor, v: Tensor) -> Tensor:
        return self.inner(x, v, v)

    def component_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:-1], 1)


class FromOrigin(ABC):
    """What spaces share that have no formulas of their own for exp and log at the origin."""

    @abstractmethod
    def exp(self, x: Tensor, v: Tensor) -> Tensor: ...
    @abstractmethod
    def log(self, x: Tensor, y: Tensor) -> Tensor: ...
    @abstractmethod
    def origin(self, dim: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor: ...

    def exp0(self, v: Tensor) -> Tensor:
        return self.exp(self.origin(v.shape[-1], v.dtype, v.device), v)

    def log0(self, x: Tensor) -> Tensor:
        return self.log(self.origin(x.shape[-1], x.dtype, x.device), x)


class Embedded(Curved, FromOrigin):
    """A curved space whose points [x₀, x'] have one coordinate more than it has dimensions; the origin has x' = 0."""

    @abstractmethod
    def project(self, x: Tensor) -> Tensor: ...
    @abstractmethod
    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor: ...

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return self.project(x + v)

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        return self.exp(x, -lr * self.riemannian_gradient(x, gradient))

    def origin(self, dim: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
        return self.project(torch.zeros(dim, dtype=dtype, device=device))

    def random(
        self, generator: torch.Generator, shape: tuple[int, ...], scale: float, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        along = normal(generator, (*shape[:-1], shape[-1] - 1), scale, dtype)
        return self.exp(self.origin(shape[-1], dtype), torch.nn.functional.pad(along, (1, 0)))


def normal(generator: torch.Generator, shape: tuple[int, ...], scale: float, dtype: torch.dtype) -> Tensor:
    """Normal numbers, drawn on the CPU, so that a seed gives the same ones for every device."""
    return torch.zeros(shape, dtype=dtype).normal_(0.0, scale, generator=generator)
