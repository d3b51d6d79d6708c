"""ComplEx: a diagonal bilinear form in complex numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from murp.models.model import Query, Rows, Table
from murp.models.shared.complex_numbers import Paired, conjugate, modulus, times
from murp.models.shared.dot_product import DotProduct


class ComplEx(Paired, DotProduct):
    """ComplEx: φ = Re Σᵢ sᵢ rᵢ ōᵢ with s, r, o ∈ ℂᵏ, held as d = 2k real numbers.

    The query is q = s r (B, d), and Re Σ qᵢ ōᵢ is the real inner product ⟨q, o⟩.

    Trouillon, Welbl, Riedel, Gaussier, Bouchard: Complex Embeddings for Simple Link Prediction, ICML 2016. The usual
    settings are those of Lacroix, Usunier, Obozinski: Canonical Tensor Decomposition for Knowledge Base Completion,
    ICML 2018.
    """

    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "one-vs-all",
        "optimizer": "adagrad",
        "lr": 0.1,
        "batch_size": 1000,
        "regularizer": "n3",
        "regularizer_weight": 0.05,
    }

    def declare(self) -> tuple[Table, ...]:
        self.half()
        return (Table("entity", "entity", (self.dim,)), Table("relation", "relation", (self.dim,)))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((self.dropped(times(subject["entity"], relation["relation"])),))

    def converse(self, objects: Rows, relation: Rows) -> Tensor:
        """o r̄ (B, d), so that φ = ⟨s, o r̄⟩."""
        return times(objects["entity"], conjugate(relation["relation"]))

    def factors(self, subject: Rows, relation: Rows, objects: Rows) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """|s|, |r|, |o| (B, d/2): what N3 takes to the third power."""
        return modulus(subject["entity"]), (modulus(relation["relation"]),), modulus(objects["entity"])
