"""The interface of an optimizer: a step on rows, from their gradients and a state for each row.

The state has one row for each row of the parameters. Only rows with a gradient are read and written, so the cost of a
step does not depend on the number of entities.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from murp.geometry import Geometry
from murp.models.model import Table
from murp.settings import Part, Span, setting

State = dict[str, Tensor]
TABLES = "optimizer."  # begins the names of an optimizer's tables in a checkpoint


class Optimizer(Part):
    """Updates rows (n, …) of a table with their gradients.

    On a curved space the gradient is the Riemannian one, the step follows the geodesic (the exponential map), and
    vectors that are remembered of earlier gradients are carried along it (parallel transport).
    """

    lr: float = setting(
        50.0,
        "learning rate; in the paper (SGD, objective bernoulli) 50 for WN18RR and NELL, 10 for FB15k-237; small, dense "
        "graphs and other objectives need less",
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
        """The state of each row of a table: names and shapes; all begin at 0. A row is given as one flat vector."""
        return {}

    rate_by_loss: ClassVar[bool] = False  # whether steps grow with gradients: a rate then suits one objective alone

    @abstractmethod
    def step(self, geometry: Geometry, x: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        """Rows x (n, d) after a step against ``gradient`` (n, d); ``state`` (n, …) is replaced, not changed in place.

        Matrices and single numbers are given as rows too.
        """

    def loop(self) -> tuple[Callable[..., None], tuple[float, ...]] | None:
        """A compiled loop on the CPU that makes the same step in flat space without clipping, and its settings after
        the learning rate; see :meth:`move`. Imported only here. None: there is none.

        A subclass does not inherit it, since it may have another step.
        """
        return None

    def move(
        self,
        geometry: Geometry,
        x: Tensor,
        gradient: Tensor,
        state: State,
        lr: float,
        *,
        where: Tensor | None = None,
        marks: Tensor | None = None,
    ) -> bool:
        """The same as :meth:`step` with a compiled loop, on the CPU and in place. Returns whether there is such a loop.

        ``gradient`` (m, d) is of the rows ``where`` (m) of x; None: of all, in their order. Only those change that have
        ``marks`` (m); None: all. A row may be named twice if only one of the two has a mark.
        """
        found = self.loop() if "loop" in vars(type(self)) and geometry.is_flat and not self.clip else None
        if found is None:
            return False
        loop, settings = found
        loop(x, state, gradient, where, marks, (lr, *settings))
        return True

    def clipped(self, geometry: Geometry, x: Tensor, gradient: Tensor) -> Tensor:
        """Euclidean gradients (n, d), shortened if the Riemannian gradients at x are longer than ``clip``."""
        if not self.clip:
            return gradient
        g = geometry.riemannian_gradient(x, gradient)
        length = geometry.inner(x, g, g).sqrt()
        return gradient * (self.clip / length.clamp(min=self.clip))
