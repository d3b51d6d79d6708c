"""Rows of d real numbers as d/2 complex ones: the first half are the real parts, the second the imaginary ones.

Models that need them share one layout. PyTorch's own complex numbers are not used: they cannot be compiled everywhere.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.settings import Part


def check_even(dim: int, model: type) -> None:
    """Raise if d is odd."""
    if dim % 2:
        raise ConfigError(
            f"{model.__name__} pairs its numbers, so dim must be even, not {dim}. Choose {dim - 1 or 2} or {dim + 1}."
        )


def times(x: Tensor, y: Tensor) -> Tensor:
    """The products x y (…, d), number by number. As a map of x it is a rotation and stretch of each pair."""
    (a, b), (p, q) = x.chunk(2, -1), y.chunk(2, -1)
    return torch.cat([a * p - b * q, a * q + b * p], -1)


def conjugate(x: Tensor) -> Tensor:
    """The conjugates (…, d)."""
    real, imaginary = x.chunk(2, -1)
    return torch.cat([real, -imaginary], -1)


def modulus(x: Tensor) -> Tensor:
    """The moduli (…, d/2); the gradient at 0 is finite."""
    a, b = x.chunk(2, -1)
    return (a * a + b * b + torch.finfo(x.dtype).tiny).sqrt()


def unit(x: Tensor) -> Tensor:
    """x/|x| (…, d): rotations by the angles of x."""
    length = modulus(x)
    return x / torch.cat([length, length], -1)


class Paired(Part):
    """For models whose numbers are pairs: an odd dimension is refused, before anything is written."""

    dim: int

    @classmethod
    def refuse(cls, config: Any) -> None:
        super().refuse(config)
        check_even(config.dim, cls)

    def half(self) -> int:
        """d/2."""
        check_even(self.dim, type(self))
        return self.dim // 2
