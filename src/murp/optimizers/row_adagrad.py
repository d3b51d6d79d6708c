"""Row-wise Adagrad: every row has its own learning rate, which falls with its past gradients."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from murp.geometry import Geometry
from murp.models.model import Table
from murp.optimizers.adagrad import Adagrad


class RowAdagrad(Adagrad):
    """Row-wise Adagrad: one number for each row, so its state needs almost no memory.

        s ← s + |g|²/d,   θ ← exp_θ(-η g / (√s + ε))

    for rows of d numbers: s sums the mean of the squares of a row (Mudigere and others 2022), on a curved space g is
    the Riemannian gradient and |g| its length in the metric at θ. In flat space exp_θ(v) = θ + v.
    """

    def state_shapes(self, table: Table) -> dict[str, tuple[int, ...]]:
        return {"sum": (1,)}

    def squares(self, geometry: Geometry, x: Tensor, gradient: Tensor) -> Tensor:
        g = geometry.riemannian_gradient(x, gradient)
        return geometry.inner(x, g, g) / x.shape[-1]

    def loop(self) -> tuple[Callable[..., None], tuple[float, ...]]:
        from murp.kernels import numba_optimizers

        return numba_optimizers.adagrad, (self.eps,)
