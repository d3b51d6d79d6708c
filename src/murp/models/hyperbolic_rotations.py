"""RotH, RefH and AttH: a relation turns pairs of numbers and translates, on a ball with a curvature of its own.

Chami, Wolf, Juan, Sala, Ravi, Ré: Low-Dimensional Hyperbolic Knowledge Graph Embeddings, ACL 2020. Beside them a
model of ours that stretches as MuRP does.
"""

from __future__ import annotations

from torch import Tensor

from murp.geometry import poincare
from murp.models.model import Rows, Table
from murp.models.shared.rotations_and_reflections import USUAL, Attention, Reflection, Rotation
from murp.models.shared.tangent_distance import TangentDistance, moved_by

HYPERBOLIC = {**USUAL, "regularizer": "l2", "regularizer_weight": 0.002}


class RotH(Rotation, TangentDistance):
    """RotH: φ = -d_c(Rot_r(exp₀(s) ⊕ exp₀(p_r)) ⊕ exp₀(r), exp₀(o))² + b_s + b_o with c = c_r.

    s, o, p_r and r are vectors (d) of the tangent space at 0; Rot_r rotates each pair of numbers. The query is (B, d)
    in the ball of curvature -c_r. Chami and others, ACL 2020.
    """

    usual = HYPERBOLIC

    def relation_tables(self) -> tuple[Table, ...]:
        return (*super().relation_tables(), Table("first_translation", "relation", (self.dim,)))

    def moved(self, subject: Tensor, relation: Rows, c: Tensor) -> Tensor:
        x = self.turned(moved_by(subject, relation["first_translation"], c), relation)
        return poincare.mobius_add(x, poincare.exp0(relation["translation"], c=c), c=c)


class RefH(Reflection, TangentDistance):
    """RefH: φ = -d_c(exp₀(Ref_r s) ⊕ exp₀(r), exp₀(o))² + b_s + b_o with c = c_r.

    s, o and r are vectors (d) of the tangent space at 0; Ref_r reflects each pair of numbers. The query is (B, d) in
    the ball of curvature -c_r. Chami and others, ACL 2020.
    """

    usual = HYPERBOLIC

    def moved(self, subject: Tensor, relation: Rows, c: Tensor) -> Tensor:
        return moved_by(self.turned(subject, relation), relation["translation"], c)


class AttH(Attention, TangentDistance):
    """AttH: φ = -d_c(exp₀(α Rot_r s + (1 - α) Ref_r s) ⊕ exp₀(r), exp₀(o))² + b_s + b_o with c = c_r.

    (α, 1 - α) = softmax(⟨a_r, Rot_r s⟩/√d, ⟨a_r, Ref_r s⟩/√d). The query is (B, d) in the ball of curvature -c_r.
    Chami and others, ACL 2020.
    """

    usual = HYPERBOLIC

    def moved(self, subject: Tensor, relation: Rows, c: Tensor) -> Tensor:
        return moved_by(self.turned(subject, relation), relation["translation"], c)


class RotHStretch(Rotation, TangentDistance):
    """φ = -d_c(exp₀(Rot_r(m_r s)) ⊕ exp₀(r), exp₀(o))² + b_s + b_o with c = c_r: rotation, and MuRP's stretch.

    s, o and r are vectors (d) of the tangent space at 0; m_r stretches every coordinate and begins at 1; Rot_r rotates
    each pair. The query is (B, d) in the ball of curvature -c_r. Of RotH (Chami and others, ACL 2020) and MuRP
    (Balažević, Allen, Hospedales, NeurIPS 2019).
    """

    usual = HYPERBOLIC

    def relation_tables(self) -> tuple[Table, ...]:
        return (*super().relation_tables(), Table("stretch", "relation", (self.dim,), initial="one"))

    def moved(self, subject: Tensor, relation: Rows, c: Tensor) -> Tensor:
        return moved_by(self.turned(relation["stretch"] * subject, relation), relation["translation"], c)
