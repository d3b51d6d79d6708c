"""MuRP as one builds it with geoopt: its parameters on its ball, its Riemannian SGD, our score.

The score is murp's own, so that only the optimisers are compared. Dense: autograd computes gradients of whole tables,
and ``RiemannianSGD`` updates every row. Sparse: lookups have sparse gradients, and ``SparseRiemannianSGD`` updates only
the rows that were used.
"""

from __future__ import annotations

import geoopt
import torch
from torch import Tensor
from torch.nn.functional import embedding

from murp.geometry import PoincareBall
from murp.models import MultiRelational
from murp.models.model import Role
from murp.objectives.bernoulli import Bernoulli


class GeooptMuRP:
    """The tables of ``model``, copied, under one of geoopt's optimisers."""

    def __init__(self, model: MultiRelational, lr: float, *, sparse: bool) -> None:
        self.model, self.sparse = model, sparse
        ball = geoopt.PoincareBallExact(c=1.0)  # steps along geodesics, as the paper does
        self.tables: dict[str, torch.nn.Parameter] = {}
        for table in model.tables:
            # The sparse optimiser takes matrices: a bias is a row of one number.
            values = model.parameters[table.name].clone().view(model.rows_of(table), -1)
            on_ball = isinstance(table.geometry, PoincareBall)
            self.tables[table.name] = (
                geoopt.ManifoldParameter(values, manifold=ball) if on_ball else torch.nn.Parameter(values)
            )
        optimiser = geoopt.optim.SparseRiemannianSGD if sparse else geoopt.optim.RiemannianSGD
        self.optimiser = optimiser(list(self.tables.values()), lr=lr)

    def step(self, positives: Tensor, negatives: Tensor) -> float:
        """One step on positives (B, 3) and negatives (B, k); the mean loss before it."""
        objects = torch.cat([positives[:, 2:], negatives], dim=1)
        indices: dict[Role, Tensor] = {"subject": positives[:, 0], "relation": positives[:, 1], "object": objects}
        rows = {role: self._rows(role, where) for role, where in indices.items()}
        self.optimiser.zero_grad()
        loss = Bernoulli().loss(self.model.score_rows(rows["subject"], rows["relation"], rows["object"]))
        loss.backward()
        self.optimiser.step()
        return float(loss.detach())

    def _rows(self, role: Role, where: Tensor) -> dict[str, Tensor]:
        return {
            table.name: embedding(where, self.tables[table.name], sparse=self.sparse).view(*where.shape, *table.shape)
            for table in self.model.tables
            if role in table.roles
        }
