"""DistMult: a diagonal bilinear form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from murp.models.model import Query, Rows, Table
from murp.models.shared.dot_product import DotProduct


class DistMult(DotProduct):
    """DistMult: φ = Σᵢ sᵢ rᵢ oᵢ. The query is q = s r (B, d).

    The form is symmetric in s and o; reciprocal relations have rows of their own.

    Yang, Yih, He, Gao, Deng: Embedding Entities and Relations for Learning and Inference in Knowledge Bases, ICLR 2015.
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
        return (Table("entity", "entity", (self.dim,)), Table("relation", "relation", (self.dim,)))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((self.dropped(subject["entity"] * relation["relation"]),))

    def converse(self, objects: Rows, relation: Rows) -> Tensor:
        """o r (B, d), so that φ = ⟨s, o r⟩."""
        return objects["entity"] * relation["relation"]
