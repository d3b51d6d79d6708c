"""Riemannian TransE: a relation moves its subject some way towards a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from murp.geometry import PoincareBall, poincare
from murp.models.model import Model, Numbers, Query, Rows, Table, squared_norm
from murp.settings import Span, setting


class RiemannianTransE(Model):
    """φ = γ - d(x, o) with x = exp_s(ℓ_r u), u the unit vector from s towards p_r: TransE without parallel vectors.

    s, o and p_r are points (d) of the ball; the relation goes the length ℓ_r towards p_r, or away where ℓ_r < 0. With
    w = (-s) ⊕ p_r the query is x = s ⊕ exp₀(ℓ_r/2 w/|w|) (B, d), and d(s, x) = |ℓ_r|. In flat space, with p_r far away,
    this is TransE.

    After Suzuki, Enokida, Yamanishi: Riemannian TransE: Multi-relational Graph Embedding in Non-Euclidean Space, 2019
    (openreview.net/forum?id=r1xRW3A9YX), whose relations are moves towards a point. One length for each relation, γ
    and the plain distance are our reading, made without their code.
    """

    gamma: float = setting(3.0, "the score of a perfect match: φ = γ - distance", least=0, search=Span(1, 12, log=True))
    curvature: float = setting(1.0, "curvature c of the ball, whose radius is 1/√c", above=0)
    initial_scale = 0.01
    drops_queries = True
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "self-adversarial",
        "negatives": 100,
        "optimizer": "adam",
        "lr": 0.1,  # a step of Adam on the ball moves a whole row so far
        "batch_size": 500,
    }

    def declare(self) -> tuple[Table, ...]:
        space = PoincareBall(self.curvature)
        return (
            Table("entity", "entity", (self.dim,), space),
            Table("towards", "relation", (self.dim,), space),
            Table("length", "relation", ()),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        s, c = subject["entity"], self.curvature
        w = poincare.mobius_add(-s, relation["towards"], c=c)
        # At s = p_r there is no direction; the subject stays.
        unit = w / (w.square().sum(-1, keepdim=True) + torch.finfo(w.dtype).tiny).sqrt()
        step = poincare.exp0(relation["length"][:, None] / 2 * unit, c=c)
        x = self.dropped(poincare.mobius_add(s, step, c=c))
        return Query((x,), {"xx": squared_norm(x)})

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        squared = poincare.squared_distance_from_products(
            query["xx"], candidate["square"], products[0], c=self.curvature
        )
        # The rounding of d² is added under the root, whose slope would be infinite at 0.
        return self.gamma - (squared + torch.finfo(squared.dtype).eps).sqrt()
