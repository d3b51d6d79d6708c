"""TransE: a relation is a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from murp.models.model import Candidate, Model, Numbers, Query, Rows, Table, squared_norm
from murp.settings import Span, setting


class TransE(Model):
    """TransE: φ = γ - |s + r - o|, the norm L1 or L2. The query is x = s + r (B, d).

    L2 comes from inner products, |x - v|² = |x|² - 2⟨x,v⟩ + |v|²; L1 has no product form and is computed in tiles.

    Bordes, Usunier, García-Durán, Weston, Yakhnenko: Translating Embeddings for Modeling Multi-relational Data,
    NeurIPS 2013.
    """

    norm: int = setting(1, "which norm measures the distance, L1 or L2", least=1, most=2)
    gamma: float = setting(6.0, "the score of a perfect match: φ = γ - distance", least=0, search=Span(2, 24, log=True))
    initial_scale = 0.1
    drops_queries = True
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "self-adversarial",
        "negatives": 100,
        "optimizer": "adam",
        "lr": 0.003,
        "batch_size": 500,
    }

    def declare(self) -> tuple[Table, ...]:
        self.products = self.norm == 2
        return (Table("entity", "entity", (self.dim,)), Table("relation", "relation", (self.dim,)))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        x = self.dropped(subject["entity"] + relation["relation"])
        return Query((x,), {"xx": squared_norm(x)} if self.products else {})

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        return super().candidate(entity, shared) if self.products else Candidate((entity["entity"],))

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        return self.gamma - _distance(query["xx"], candidate["square"], products[0])

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        (x,), (v,) = query.vectors, candidate.vectors
        if v.dim() == 2:
            return self.gamma - torch.cdist(x.squeeze(1), v, p=1.0)
        return self.gamma - (x - v).abs().sum(-1)


def _distance(xx: Tensor, vv: Tensor, xv: Tensor) -> Tensor:
    """|x - v| from products. Their rounding is added under the root: its slope would be infinite at 0."""
    eps = torch.finfo(xv.dtype).eps
    return ((xx + vv - 2 * xv).clamp(min=0) + eps * (xx + vv) + eps * eps).sqrt()
