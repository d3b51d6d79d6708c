"""RESCAL: a bilinear form with a full matrix for each relation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from murp.kernels.matrices import applied_at
from murp.models.model import Query, Rows, Table
from murp.models.shared.dot_product import DotProduct


class RESCAL(DotProduct):
    """RESCAL: φ = ⟨M_r s, o⟩ with a matrix M_r (d, d). The query is q = M_r s (B, d).

    Nickel, Tresp, Kriegel: A Three-Way Model for Collective Learning on Multi-Relational Data, ICML 2011. The usual
    settings are those of Zhang, Cai, Wang: Duality-Induced Regularizer for Tensor Factorization Based Knowledge Graph
    Completion, NeurIPS 2020.
    """

    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "one-vs-all",
        "optimizer": "adagrad",
        "lr": 0.1,
        "batch_size": 1024,
        "regularizer": "dura",
        "regularizer_weight": 0.05,
    }

    def declare(self) -> tuple[Table, ...]:
        return (
            Table("entity", "entity", (self.dim,)),
            Table("matrix", "relation", (self.dim, self.dim), initial="xavier"),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((self.dropped(applied_at(relation, "matrix", subject["entity"])),))

    def converse(self, objects: Rows, relation: Rows) -> Tensor:
        """M_rᵀ o (B, d), so that φ = ⟨s, M_rᵀ o⟩."""
        return applied_at(relation, "matrix", objects["entity"], transposed=True)
