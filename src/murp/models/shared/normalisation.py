"""Batch normalisation over shared tables."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import batch_norm

from murp.models.model import Model, Rows, Table

MOMENTUM = 0.1  # the share of a batch in the running mean and variance


class BatchNorm:
    """(x - mean) / √(variance + 10⁻⁵) · weight + offset, feature by feature (axis 1 of x).

    In training mean and variance are those of the batch, and the running ones move towards them. Otherwise they are the
    running ones, so that a score does not depend on its batch. These two tables are kept by the model and not trained.
    """

    def __init__(self, name: str, features: int) -> None:
        self.name, self.features = name, features

    def tables(self) -> tuple[Table, ...]:
        """Weight, offset, and the running mean and variance."""
        shape = (self.features,)
        return (
            Table(f"{self.name}_weight", "shared", shape, initial="one"),
            Table(f"{self.name}_offset", "shared", shape, initial="zero"),
            Table(f"{self.name}_mean", "shared", shape, initial="zero", trained=False),
            Table(f"{self.name}_variance", "shared", shape, initial="one", trained=False),
        )

    def __call__(self, model: Model, x: Tensor, shared: Rows) -> Tensor:
        """x (B, features, …), normalised. A batch of one has no variance: it is normalised as if not in training."""
        weight, offset = shared[f"{self.name}_weight"], shared[f"{self.name}_offset"]
        # The model's own tables, not the copies that a step reads: they move here.
        mean, variance = (model.parameters[f"{self.name}_{what}"][0] for what in ("mean", "variance"))
        return batch_norm(x, mean, variance, weight, offset, model.training and len(x) > 1, MOMENTUM, 1e-5)
