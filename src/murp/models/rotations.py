"""RotE, RefE and AttE: a relation turns pairs of numbers and translates, in Euclidean space.

Chami, Wolf, Juan, Sala, Ravi, Ré: Low-Dimensional Hyperbolic Knowledge Graph Embeddings, ACL 2020.
"""

from __future__ import annotations

from torch import Tensor

from murp.models.model import Rows
from murp.models.shared.flat_distance import FlatDistance
from murp.models.shared.rotations_and_reflections import Attention, Reflection, Rotation

USUAL = {
    "objective": "self-adversarial",
    "negatives": 250,
    "optimizer": "adam",
    "lr": 0.001,
    "batch_size": 500,
}


class RotE(Rotation, FlatDistance):
    """RotE: φ = -|Rot_r s + r - o|² + b_s + b_o, Rot_r a rotation of each pair of numbers.

    The query is x = Rot_r s + r (B, d). Chami and others, ACL 2020.
    """

    usual = USUAL

    def moved(self, subject: Tensor, relation: Rows) -> Tensor:
        return self.turned(subject, relation) + relation["translation"]


class RefE(Reflection, FlatDistance):
    """RefE: φ = -|Ref_r s + r - o|² + b_s + b_o, Ref_r a reflection of each pair of numbers.

    The query is x = Ref_r s + r (B, d). Chami and others, ACL 2020.
    """

    usual = USUAL

    def moved(self, subject: Tensor, relation: Rows) -> Tensor:
        return self.turned(subject, relation) + relation["translation"]


class AttE(Attention, FlatDistance):
    """AttE: φ = -|α Rot_r s + (1 - α) Ref_r s + r - o|² + b_s + b_o, with an attention α(s, r).

    (α, 1 - α) = softmax(⟨a_r, Rot_r s⟩/√d, ⟨a_r, Ref_r s⟩/√d). The query is (B, d). Chami and others, ACL 2020.
    """

    usual = USUAL

    def moved(self, subject: Tensor, relation: Rows) -> Tensor:
        return self.turned(subject, relation) + relation["translation"]
