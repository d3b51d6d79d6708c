"""Adagrad: every parameter has its own learning rate, which falls with its past gradients."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from murp.geometry import Geometry
from murp.models.model import Table
from murp.optimizers.optimizer import Optimizer, State
from murp.settings import Span, again, setting


class Adagrad(Optimizer):
    """Adagrad by element (Duchi, Hazan and Singer 2011), on a curved space by row.

        s ← s + g²,   θ ← θ - η g / (√s + ε)

    On a curved space single elements have no meaning: g is the Riemannian gradient, s the sum of its squared lengths in
    the metric at θ, one number for each row (one for each part of a product), and θ ← exp_θ(-η g / (√s + ε)), along the
    exponential map (Bécigneul and Ganea 2019). A length needs no transport.
    """

    lr = again(0.1, search=Span(0.01, 1, log=True))
    eps: float = setting(1e-10, "added to the denominator, the root of the summed squares", above=0)

    def state_shapes(self, table: Table) -> dict[str, tuple[int, ...]]:
        return {"sum": table.geometry.component_shape((math.prod(table.shape),))}

    def squares(self, geometry: Geometry, x: Tensor, gradient: Tensor) -> Tensor:
        """The squares that are summed, from Euclidean gradients (n, d)."""
        return geometry.component_inner(x, geometry.riemannian_gradient(x, gradient))

    def step(self, geometry: Geometry, x: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        gradient = self.clipped(geometry, x, gradient)
        state["sum"] = state["sum"] + self.squares(geometry, x, gradient)
        # The Riemannian gradient is linear in the Euclidean one, which may as well be divided first.
        return geometry.step(x, gradient / (state["sum"].sqrt() + self.eps), lr)

    def loop(self) -> tuple[Callable[..., None], tuple[float, ...]]:
        from murp.kernels import numba_optimizers

        return numba_optimizers.adagrad, (self.eps,)
