"""STransE: a relation has a matrix for subjects, one for objects, and a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from murp.kernels.matrices import applied_at
from murp.models.model import Candidate, Model, Query, Rows, Table, inner
from murp.settings import Span, setting


class STransE(Model):
    """STransE: φ = γ - |W_r s + r - V_r o|, the norm L1 or L2, with matrices W_r and V_r (d, d) that begin as identity.

    So it begins as TransE. The query is x = W_r s + r (B, d) and V_r (B, d²). Each relation moves the candidates, so
    there is no product form, and V_r o is computed in tiles: a score of n candidates takes n d² multiplications.

    Nguyen, Sirts, Qu, Johnson: STransE: a Novel Embedding Model of Entities and Relationships in Knowledge Bases,
    NAACL 2016.
    """

    norm: int = setting(1, "which norm measures the distance, L1 or L2", least=1, most=2)
    gamma: float = setting(6.0, "the score of a perfect match: φ = γ - distance", least=0, search=Span(2, 24, log=True))
    initial_scale = 0.1
    drops_queries = True
    products = False
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "self-adversarial",
        "negatives": 100,
        "optimizer": "adam",
        "lr": 0.001,
        "batch_size": 500,
    }

    def declare(self) -> tuple[Table, ...]:
        square = (self.dim, self.dim)
        return (
            Table("entity", "entity", (self.dim,)),
            Table("relation", "relation", (self.dim,)),
            Table("subject_matrix", "relation", square, initial="identity"),
            Table("object_matrix", "relation", square, initial="identity"),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        x = applied_at(relation, "subject_matrix", subject["entity"]) + relation["relation"]
        return Query((self.dropped(x), relation["object_matrix"].flatten(1)))

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        return Candidate((entity["entity"],))

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        (x, matrices), (v,) = query.vectors, candidate.vectors
        matrices = matrices.view(len(matrices), self.dim, self.dim)
        apart = x.transpose(1, 2) - _moved(matrices, v)
        if self.norm == 1:
            return self.gamma - apart.abs().sum(1)
        eps = torch.finfo(apart.dtype).eps
        return self.gamma - (apart.square().sum(1) + eps * eps).sqrt()  # the root's slope would be infinite at 0


def _moved(matrices: Tensor, v: Tensor) -> Tensor:
    """M_b v (B, d, n) of matrices (B, d, d) and candidates (B, n, d), or shared ones (n, d)."""
    if v.dim() == 3:
        return matrices @ v.transpose(1, 2)
    return inner(matrices.flatten(0, 1), v).view(*matrices.shape[:2], len(v))
