"""What an optimizer must offer: a step on rows, from their gradients and a state of its own for each row.

The state is tables beside the parameters', one row for each of theirs. Only rows with a gradient are read and written:
a step costs what its batch costs, however many entities there are.
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from murp.geometry import Geometry
from murp.models.model import Table
from murp.settings import Part, Span, setting

State = dict[str, Tensor]
TABLES = "optimizer."  # begins the names of an optimizer's tables in a checkpoint


class Optimizer(Part):
    """Moves rows (n, …) of a table against their gradients.

    On a curved space the gradient is the Riemannian one, the step follows the geodesic (the exponential map), and
    vectors that are remembered of earlier gradients are carried along it (parallel transport).
    """

    lr: float = setting(
        50.0,
        "learning rate; in the paper (SGD) 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs need less",
        above=0,
        search=Span(1, 100, log=True),
    )
    clip: float = setting(
        0.0,
        "largest norm of a row's gradient, in the metric of its space; longer gradients are clipped to it; 0: no "
        "clipping",
        least=0,
    )

    def state_shapes(self, table: Table) -> dict[str, tuple[int, ...]]:
        """What is kept of each row of a table: names and shapes; all begin at 0. A row comes flat, as one vector."""
        return {}

    @abstractmethod
    def step(self, geometry: Geometry, x: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        """Rows x (n, d) after a step against ``gradient`` (n, d); ``state`` (n, …) is replaced, not changed in place.

        What is no vector (a matrix, a number) comes as rows too.
        """

    def move(
        self, geometry: Geometry, x: Tensor, gradient: Tensor, touched: Tensor | None, state: State, lr: float
    ) -> bool:
        """:meth:`step` by a compiled loop, on the CPU and in place, where there is one; whether there was.

        Only rows that are ``touched`` (n, 1) move; None: all.
        """
        return False

    def clipped(self, geometry: Geometry, x: Tensor, gradient: Tensor) -> Tensor:
        """Euclidean gradients (n, d), shortened where the Riemannian ones at x are longer than ``clip``."""
        if not self.clip:
            return gradient
        g = geometry.riemannian_gradient(x, gradient)
        length = geometry.inner(x, g, g).sqrt()
        return gradient * (self.clip / length.clamp(min=self.clip))
