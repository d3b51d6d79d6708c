"""Squared distances of queries on a ball to tangent vectors at its origin, with written-out derivatives, on the CPU.

For x in the ball of curvature -c and v in the tangent space at 0 the distance is

    z = sinh²(√c d(x, exp₀(v))/2) = [c|x|² + (1 + c|x|²) S² - 2c⟨x,v⟩ w] / (1 - c|x|²)
    √c d = log(1 + 2(z + √(z² + z)))

with r = √c|v|, S = sinh r and w = cosh r · S/r. With t = r² we have dS²/dt = w and w' = dw/dt = (1 + 2S² - w) / 2t. For
G = ∂d²/∂z = 2√c d / (c √(z² + z)), a = c|x|² and g = 1 - a, the derivatives of d² are

    by ⟨x,v⟩   -2c w G / g,
    by |v|²    c T,  T = [(1 + a) w - 2c⟨x,v⟩ w'] G / g,
    by |x|²    Σ_k c [1 + 2S² - 2c⟨x,v⟩ w] G / g²,
    by c       Σ_k [|x|² (1 + 2S²) - 2⟨x,v⟩ w] G / g² + |v|² T - d²/c.

PyTorch's operations and their gradients are some forty passes over all pairs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor


def fits(xx: Tensor, vv: Tensor, xv: Tensor, c: Tensor | float) -> bool:
    """Whether :func:`squared` can compute these, |v|² expanded: on the CPU with gradients, a curvature for each query,
    candidates (…, K) of each query or (K) of all, and no vector so long that sinh² would be beyond what exact gaps
    need."""
    if not isinstance(c, Tensor) or xv.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    shapes = xx.shape == c.shape == (*xv.shape[:-1], 1) and vv.shape in (xv.shape, xv.shape[-1:])
    if not (shapes and torch.is_grad_enabled() and xv.dtype in (torch.float32, torch.float64) and xv.numel()):
        return False
    largest = 1 + math.log(8 / torch.finfo(xv.dtype).eps) / 2
    return bool((c * vv <= largest**2).all() if vv.shape == xv.shape else c.max() * vv.max() <= largest**2)


def squared(xx: Tensor, vv: Tensor, xv: Tensor, c: Tensor) -> Tensor:
    """d(x, exp₀(v))² (…, K) from |x|² and c (…, 1), |v|² and ⟨x,v⟩ (…, K). Differentiable once by all four.

    If all queries have the same candidates, |v|² may be an expanded row.
    """
    return _Squared.apply(xx, vv, xv, c)  # type: ignore[no-any-return]


class _Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, xx: Tensor, vv: Tensor, xv: Tensor, c: Tensor) -> Tensor:
        from murp.kernels import numba_tangent_distances as kernels

        found, *parts = kernels.distances(xx, vv, xv, c)
        ctx.save_for_backward(xx, vv, xv, c, *parts)
        return found

    @staticmethod
    def backward(ctx: Any, of: Tensor) -> tuple[Tensor, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError("distances to tangent vectors can be differentiated once, not twice")
        from murp.kernels import numba_tangent_distances as kernels

        return kernels.derivatives(of, *ctx.saved_tensors)
