"""Stochastic gradient descent, the paper's optimizer."""

from __future__ import annotations

from torch import Tensor

from murp.geometry import Geometry
from murp.optimizers.optimizer import Optimizer, State


class SGD(Optimizer):
    """θ ← exp_θ(-η ∇_R L); in flat space θ ← θ - η ∇L (Bonnabel 2013)."""

    rate_by_loss = True

    def step(self, geometry: Geometry, x: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        return geometry.step(x, self.clipped(geometry, x, gradient), lr)
