"""What an optimizer must offer: a step on rows, from their gradients and a state of its own for each row.

The state is tables beside the parameters', one row for each of theirs. Only rows with a gradient are read and written:
a step costs what its batch costs, however many entities there are.
"""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from murp.geometry import Geometry
from murp.models.model import Table
from murp.settings import Part, setting

State = dict[str, Tensor]


class Optimizer(Part):
    """Moves rows (n, …) of a table against their gradients.

    On a curved space the gradient is the Riemannian one, the step follows the geodesic (the exponential map), and what
    is remembered of earlier gradients is transported along it.
    """

    lr: float = setting(
        50.0,
        "learning rate; the paper, with SGD: 50 for WN18RR and NELL, 10 for FB15k-237; small, dense graphs need less",
        above=0,
    )
    clip: float = setting(0.0, "longest gradient of a row; a longer one is shortened to it; 0: any length", least=0)

    def state_shapes(self, table: Table) -> dict[str, tuple[int, ...]]:
        """What is kept of each row of a table: names and shapes; all begin at 0."""
        return {}

    @abstractmethod
    def step(self, geometry: Geometry, x: Tensor, gradient: Tensor, state: State, lr: float | Tensor) -> Tensor:
        """Rows x (n, d) after a step against ``gradient`` (n, d); ``state`` (n, …) is replaced, not changed in place.

        What is no vector (a matrix, a number) comes as rows too.
        """

    def clipped(self, gradient: Tensor) -> Tensor:
        """Gradients (n, d) no longer than ``clip``, measured in coordinates."""
        if not self.clip:
            return gradient
        length = gradient.square().sum(-1, keepdim=True).sqrt()
        return gradient * (self.clip / length.clamp(min=self.clip))
