"""FTransE: a translation whose length is free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from murp.models.model import Query, Rows, Table
from murp.models.shared.dot_product import DotProduct


class FTransE(DotProduct):
    """FTransE: φ = ⟨s + r, o⟩ + ⟨s, o - r⟩: s + r must point the way of o, and o - r the way of s, at any length.

    That is ⟨2s + r, o⟩ - ⟨s, r⟩. The query is 2s + r (B, d), with the number -⟨s, r⟩.

    Feng, Huang, Wang, Zhou, Hao, Zhu: Knowledge Graph Embedding by Flexible Translation, KR 2016.
    """

    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "self-adversarial",
        "negatives": 100,
        "optimizer": "adam",
        "lr": 0.01,
        "batch_size": 500,
    }

    def declare(self) -> tuple[Table, ...]:
        return (Table("entity", "entity", (self.dim,)), Table("relation", "relation", (self.dim,)))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        s, r = subject["entity"], relation["relation"]
        return Query((self.dropped(2 * s + r),), {"added": -(s * r).sum(-1)})
