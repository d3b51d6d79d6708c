"""What every engine offers: training steps over prepared batches, updating a model's tables in place."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Engine(Protocol):
    """Runs steps of the paper's recipe; how the gradient is computed is the engine's own affair."""

    def run(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """Do S steps one after another and return the sum of their mean losses, a scalar tensor.

        ``positives`` (S, B, 3) are triples, ``negatives`` (S, B, k) false objects for each, both
        int64 on the model's device. The model's tables are updated in place.
        """
        ...
