"""MuRE and MuRP with a rotation: a relation stretches every coordinate, then turns each pair.

``roth-stretch`` (:mod:`murp.models.hyperbolic_rotations`) has the same map. There the entities are tangent vectors, the
curvature is learned, and the subject is translated; here all else is as MuRE and MuRP have it.
"""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Rows, Table
from murp.models.shared.linear_maps import BallMap, FlatMap
from murp.models.shared.rotations_and_reflections import USUAL, Rotation


class StretchedRotation(Rotation):
    """M_r u = Rot_r(m_r u): m_r stretches every coordinate and begins at 1, Rot_r rotates each pair."""

    def map_tables(self) -> tuple[Table, ...]:
        """The stretch and the turn."""
        return (Table("subject_stretch", "relation", (self.dim,), initial="one"), *self.turn_tables())

    def mapped(self, tangent: Tensor, relation: Rows) -> Tensor:
        """M_r u (B, d)."""
        return self.turned(relation["subject_stretch"] * tangent, relation)


class MuRERotation(StretchedRotation, FlatMap):
    """MuRE with a rotation: φ = -|Rot_r(m_r e_s) - (e_o + r)|² + b_s + b_o in Euclidean space.

    The query is y = Rot_r(m_r e_s) - r (B, d). After equation 4 of Balažević, Allen, Hospedales:
    Multi-relational Poincaré Graph Embeddings, NeurIPS 2019, and RotE (Chami and others, ACL 2020).
    """

    usual = USUAL


class MuRPRotation(StretchedRotation, BallMap):
    """MuRP with a rotation: φ = -d_B(exp₀(Rot_r(m_r log₀(h_s))), h_o ⊕ r_h)² + b_s + b_o on the Poincaré ball.

    The query is x = exp₀(Rot_r(m_r log₀(h_s))) and r (B, d) each. After equation 5 of Balažević, Allen, Hospedales:
    Multi-relational Poincaré Graph Embeddings, NeurIPS 2019, and RotH (Chami and others, ACL 2020).
    """

    usual = USUAL
