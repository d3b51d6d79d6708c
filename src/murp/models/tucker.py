"""TuckER: one core tensor for all relations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor
from torch.nn.functional import dropout

from murp.kernels.matrices import applied
from murp.models.model import Query, Rows, Table
from murp.models.shared.dot_product import DotProduct
from murp.models.shared.normalisation import BatchNorm
from murp.settings import Span, again, setting


class TuckER(DotProduct):
    """TuckER: φ = W ×₁ r ×₂ s ×₃ o = ⟨M_r s, o⟩ with M_r = Σₖ rₖ Wₖ and a core tensor W (k, d, d) shared by all.

    In training there is dropout on s, on M_r and on the query; s and the query are normalised by batch. The query is
    q = N₁(M_r N₀(s)) (B, d).

    Balažević, Allen, Hospedales: TuckER: Tensor Factorization for Knowledge Graph Completion, EMNLP 2019.
    """

    relation_dim: int = setting(0, "dimension of a relation; 0: the same as of an entity", least=0)
    input_dropout: float = setting(0.3, "dropout rate of the head's coordinates", least=0, below=1, search=Span(0, 0.5))
    matrix_dropout: float = setting(0.4, "dropout rate of the relation's matrix", least=0, below=1, search=Span(0, 0.5))
    query_dropout: float = again(0.5, search=Span(0, 0.6))
    keeps_statistics = True
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "k-vs-all",
        "label_smoothing": 0.1,
        "optimizer": "adam",
        "lr": 0.0005,
        "batch_size": 128,
    }

    def declare(self) -> tuple[Table, ...]:
        d, k = self.dim, self.relation_dim or self.dim
        self.before, self.after = BatchNorm("subject_norm", d), BatchNorm("query_norm", d)
        return (
            Table("entity", "entity", (d,), initial="xavier"),
            Table("relation", "relation", (k,), initial="xavier"),
            Table("core", "shared", (k, d, d), initial="uniform"),
            *self.before.tables(),
            *self.after.tables(),
        )

    @property
    def uses_chance(self) -> bool:
        return super().uses_chance or max(self.input_dropout, self.matrix_dropout) > 0

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        s = dropout(self.before(self, subject["entity"], shared), self.input_dropout, self.training)
        matrix = dropout(self.matrix(relation, shared), self.matrix_dropout, self.training)
        q = self.after(self, applied(matrix, s), shared)
        return Query((dropout(q, self.query_dropout, self.training),))

    def matrix(self, relation: Rows, shared: Rows) -> Tensor:
        """M_r (B, d, d)."""
        core = shared["core"]
        return (relation["relation"] @ core.flatten(1)).view(-1, *core.shape[1:])
