"""Products of spaces, for mixed curvature: a row is cut into parts, each a point of a space of its own.

The metric is the sum of the parts' metrics, so d² is the sum of their d², and every map works part by part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.geometry.spaces import FromOrigin, Geometry


@dataclass(frozen=True)
class Product(FromOrigin):
    """``parts``: each space with the width of its part of a row, in the order of the row's last axis."""

    parts: tuple[tuple[Geometry, int], ...]
    name: ClassVar[str] = "product"
    curvature: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        if not self.parts or any(width < 1 for _, width in self.parts):
            widths = ", ".join(f"{space.name}: {width}" for space, width in self.parts)
            raise ConfigError(f"a product needs parts, each at least 1 wide, and has: {widths or 'none'}")

    @property
    def width(self) -> int:
        """How many numbers a row has."""
        return sum(width for _, width in self.parts)

    @property
    def is_flat(self) -> bool:
        return all(space.is_flat for space, _ in self.parts)

    @property
    def has_free_coordinates(self) -> bool:
        return self.is_flat

    def split(self, x: Tensor) -> tuple[Tensor, ...]:
        """The parts of x [..., width], each [..., its width]."""
        if x.shape[-1] != self.width:
            raise ConfigError(f"a row of this product has {self.width} numbers, and this one {x.shape[-1]}")
        return torch.split_with_sizes(x, [width for _, width in self.parts], -1)

    def _each(self, function: Callable[..., Tensor], *rows: Tensor) -> list[Tensor]:
        """function(space, *parts of the rows) for each part."""
        cut = zip(*(self.split(row) for row in rows), strict=True)
        return [function(space, *parts) for (space, _), parts in zip(self.parts, cut, strict=True)]

    def exp(self, x: Tensor, v: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, v: space.exp(x, v), x, v), -1)

    def log(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, y: space.log(x, y), x, y), -1)

    def exp0(self, v: Tensor) -> Tensor:
        return v if self.is_flat else super().exp0(v)

    def log0(self, x: Tensor) -> Tensor:
        return x if self.is_flat else super().log0(x)

    def retract(self, x: Tensor, v: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, v: space.retract(x, v), x, v), -1)

    def transport(self, x: Tensor, y: Tensor, v: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, y, v: space.transport(x, y, v), x, y, v), -1)

    def inner(self, x: Tensor, u: Tensor, v: Tensor) -> Tensor:
        return torch.stack(self._each(lambda space, x, u, v: space.inner(x, u, v), x, u, v)).sum(0)

    def component_inner(self, x: Tensor, v: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, v: space.component_inner(x, v).expand_as(v), x, v), -1)

    def component_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape

    def riemannian_gradient(self, x: Tensor, gradient: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, g: space.riemannian_gradient(x, g), x, gradient), -1)

    def project(self, x: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x: space.project(x), x), -1)

    def project_tangent(self, x: Tensor, v: Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, v: space.project_tangent(x, v), x, v), -1)

    def contains(self, x: Tensor) -> Tensor:
        return torch.stack(self._each(lambda space, x: space.contains(x), x)).all(0)

    def distance(self, x: Tensor, y: Tensor) -> Tensor:
        """√Σ d², with the gradient 0 at x = y (a subgradient)."""
        distances = torch.stack(self._each(lambda space, x, y: space.distance(x, y), x, y))
        norm: Tensor = torch.linalg.vector_norm(distances, dim=0)
        return norm

    def squared_distance(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.stack(self._each(lambda space, x, y: space.squared_distance(x, y), x, y)).sum(0)

    def step(self, x: Tensor, gradient: Tensor, lr: float | Tensor) -> Tensor:
        return torch.cat(self._each(lambda space, x, g: space.step(x, g, lr), x, gradient), -1)

    def origin(self, dim: int, dtype: torch.dtype = torch.float32, device: torch.device | None = None) -> Tensor:
        whole = torch.cat([space.origin(width, dtype, device) for space, width in self.parts])
        self.split(whole.new_empty(dim))
        return whole

    def random(
        self, generator: torch.Generator, shape: tuple[int, ...], scale: float, dtype: torch.dtype = torch.float32
    ) -> Tensor:
        self.split(torch.empty(shape[-1]))
        drawn = [space.random(generator, (*shape[:-1], width), scale, dtype) for space, width in self.parts]
        return torch.cat(drawn, -1)
