"""MuRE and MuRP with a full matrix instead of a diagonal one for each relation."""

from __future__ import annotations

from torch import Tensor

from murp.kernels.matrices import applied_at
from murp.models.model import Rows, Table
from murp.models.shared.linear_maps import BallMap, FlatMap
from murp.settings import Part

USUAL = {
    "objective": "one-vs-all",
    "optimizer": "adam",
    "lr": 0.001,
    "lr_schedule": "linear",
    "batch_size": 1024,
}


class Matrix(Part):
    """M_r is any matrix (d, d)."""

    dim: int

    def map_tables(self) -> tuple[Table, ...]:
        """The matrix."""
        return (Table("matrix", "relation", (self.dim, self.dim), initial="xavier"),)

    def mapped(self, tangent: Tensor, relation: Rows) -> Tensor:
        """M_r u (B, d)."""
        return applied_at(relation, "matrix", tangent)


class MuREMatrix(Matrix, FlatMap):
    """MuRE with a matrix: φ = -|M_r e_s - (e_o + r)|² + b_s + b_o in Euclidean space.

    After equation 4 of Balažević, Allen, Hospedales: Multi-relational Poincaré Graph Embeddings, NeurIPS 2019.
    """

    usual = USUAL


class MuRPMatrix(Matrix, BallMap):
    """MuRP with a matrix: φ = -d_B(exp₀(M_r log₀(h_s)), h_o ⊕ r_h)² + b_s + b_o on the Poincaré ball.

    After equation 5 of Balažević, Allen, Hospedales: Multi-relational Poincaré Graph Embeddings, NeurIPS 2019.
    """

    usual = USUAL
