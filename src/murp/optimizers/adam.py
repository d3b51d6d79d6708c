"""Adam, row by row, in flat and in curved spaces."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from murp.geometry import Geometry
from murp.models.model import Table
from murp.optimizers.optimizer import Optimizer, State
from murp.settings import Span, again, setting


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015); on a curved space Riemannian Adam (Bécigneul and Ganea 2019).

        m ← β₁ m + (1 - β₁) g,   v ← β₂ v + (1 - β₂) g²,
        u = (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε),   θ' = θ - η u

    On a curved space g is the Riemannian gradient, g² its squared length in the metric at θ, one number for each row
    (one for each part of a product), θ' = exp_θ(-η u) by the exponential map, and m is carried from θ to θ' by parallel
    transport along that geodesic.

    Only rows with a gradient change, and t counts the steps of each row. So a row that is first used in the last epoch
    gets the bias correction of a first step, and its moments do not decay before. The state has the precision of the
    parameters; float32 counts to 16 million, where 1 - βᵗ is already 1.
    """

    lr = again(1e-3, search=Span(1e-4, 0.03, log=True))
    beta1: float = setting(0.9, "decay of the mean gradient", least=0, below=1)
    beta2: float = setting(0.999, "decay of the mean squared gradient", least=0, below=1)
    eps: float = setting(1e-8, "added to the denominator, the root of the mean squared gradient", above=0)

    def state_shapes(self, table: Table) -> dict[str, tuple[int, ...]]:
        row = (math.prod(table.shape),)
        return {"mean": row, "square": table.geometry.component_shape(row), "steps": (1,)}

    def step(self, geometry: Geometry, x: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        g = geometry.riemannian_gradient(x, self.clipped(geometry, x, gradient))
        steps = state["steps"] + 1
        mean = torch.lerp(state["mean"], g, 1 - self.beta1)
        square = torch.lerp(state["square"], geometry.component_inner(x, g), 1 - self.beta2)
        root = (square / _correction(self.beta2, steps)).sqrt()
        direction = mean / (_correction(self.beta1, steps) * (root + self.eps))
        moved = geometry.project(geometry.exp(x, -lr * direction))
        carried = geometry.project_tangent(moved, geometry.transport(x, moved, mean))
        state.update(mean=carried, square=square, steps=steps)
        return moved

    def loop(self) -> tuple[Callable[..., None], tuple[float, ...]]:
        from murp.kernels import numba_optimizers

        return numba_optimizers.adam, (self.beta1, self.beta2, self.eps)


def _correction(beta: float, steps: Tensor) -> Tensor:
    """1 - βᵗ, accurate also if βᵗ is nearly 1."""
    return -torch.expm1(steps * math.log(beta)) if beta else torch.ones_like(steps)
