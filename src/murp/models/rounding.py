"""Rows of a table in a format with fewer digits, each a point of its space."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from murp.geometry import Geometry, MobiusGeometry
from murp.geometry.poincare import limit_radius


def can_round(geometry: Geometry) -> bool:
    """Whether rounded points are points of the space: not on a hyperboloid or a sphere, where coordinates depend on
    each other."""
    return geometry.has_free_coordinates


def rounded(rows: Tensor, dtype: torch.dtype, geometry: Geometry) -> Tensor:
    """Rows (…, d) of points in ``dtype`` (float16 or bfloat16), every number rounded to the nearest.

    In the ball, rounding may take a row beyond the largest norm that a point may have, √c|x| = 1 - 8 eps in the
    precision of ``rows``. The numbers of such a row are rounded towards 0: then its norm is at most what it was. Laws:
    a row that ``dtype`` represents does not change; rounding twice is rounding once; NaN stays NaN.
    """
    if rows.dtype == dtype:
        return rows
    if geometry.is_flat or not geometry.has_free_coordinates:
        return rows.to(dtype)
    c = cast(MobiusGeometry, geometry).c
    found: Tensor = (_in_ball_compiled if torch.compiler.is_compiling() else _in_ball)(rows, dtype, c)
    return found


def _in_ball(rows: Tensor, dtype: torch.dtype, c: float) -> Tensor:
    near = rows.to(dtype)
    back = near.to(rows.dtype)
    radius = c**0.5 * torch.linalg.vector_norm(back, dim=-1, keepdim=True)
    away = (radius > limit_radius(rows.dtype)) & (back.abs() > rows.abs())
    # The pattern of bits one below is the next number towards 0.
    return torch.where(away, (near.view(torch.int16) - 1).view(dtype), near)


@torch.library.custom_op("murp::rounded_in_ball", mutates_args=())
def _in_ball_compiled(rows: Tensor, dtype: torch.dtype, c: float) -> Tensor:
    """:func:`_in_ball` as an operator that PyTorch does not look into: its compiler takes numbers that are rounded and
    converted back for those that they were."""
    return _in_ball(rows, dtype, c)


@_in_ball_compiled.register_fake
def _(rows: Tensor, dtype: torch.dtype, c: float) -> Tensor:
    return torch.empty_like(rows, dtype=dtype, memory_format=torch.contiguous_format)
