"""Optimizers written once more: on whole tables in float64, with a mask of the rows that a batch touches.

The ball's maps are geoopt's, so that nothing of ours is used but the gradient.
"""

from __future__ import annotations

from typing import Any

import geoopt
import torch
from torch import Tensor

# Large: a gradient that is 0 but for rounding would else be made as long as any other.
EPS = 1e-3
BALL = geoopt.PoincareBallExact(c=1.0)


class Dense:
    """One table (n, d) under an optimizer; where its geometry is curved that must be the ball of curvature -1."""

    def __init__(self, kind: str, x: Tensor, geometry: Any, lr: float, clip: float = 0.0) -> None:
        self.kind, self.x, self.lr, self.clip = kind, x.clone(), lr, clip
        self.curved = not geometry.is_flat
        self.sum = torch.zeros_like(self.x)
        self.mean = torch.zeros_like(self.x)
        self.square = torch.zeros_like(self.x)
        self.steps = torch.zeros(len(x), 1, dtype=x.dtype)

    def length(self, v: Tensor) -> Tensor:
        """|v| in the metric (n, 1)."""
        return BALL.norm(self.x, v, keepdim=True) if self.curved else v.norm(dim=-1, keepdim=True)

    def step(self, gradient: Tensor, touched: Tensor) -> None:
        """One step; rows outside ``touched`` (n) stay, and so does their state."""
        g = BALL.egrad2rgrad(self.x, gradient) if self.curved else gradient
        if self.clip:
            g = g * torch.minimum(torch.ones(()), self.clip / self.length(g).clamp(min=1e-300))
        squares = (self.length(g) ** 2).expand_as(g) if self.curved else g * g
        mask = touched[:, None]
        velocity = getattr(self, self.kind.replace("-", "_"))(g, squares, mask)
        moved, carried = self.x + velocity, self.mean
        if self.curved:
            moved = BALL.expmap(self.x, velocity)
            carried = BALL.transp(self.x, moved, self.mean)
        self.x = torch.where(mask, moved, self.x)
        self.mean = torch.where(mask, carried, self.mean)

    def sgd(self, g: Tensor, squares: Tensor, mask: Tensor) -> Tensor:
        return -self.lr * g

    def adagrad(self, g: Tensor, squares: Tensor, mask: Tensor) -> Tensor:
        self.sum = torch.where(mask, self.sum + squares, self.sum)
        return -self.lr * g / (self.sum.sqrt() + EPS)

    def row_adagrad(self, g: Tensor, squares: Tensor, mask: Tensor) -> Tensor:
        return self.adagrad(g, self.length(g) ** 2 / g.shape[1], mask)

    def adam(self, g: Tensor, squares: Tensor, mask: Tensor) -> Tensor:
        self.steps = self.steps + mask
        self.mean = torch.where(mask, 0.9 * self.mean + 0.1 * g, self.mean)
        self.square = torch.where(mask, 0.999 * self.square + 0.001 * squares, self.square)
        mean = self.mean / (1 - 0.9**self.steps).clamp(min=1e-300)
        square = self.square / (1 - 0.999**self.steps).clamp(min=1e-300)
        return -self.lr * mean / (square.sqrt() + EPS)


def table_gradients(model: Any, positives: Tensor, negatives: Tensor) -> dict[str, Tensor]:
    """∇ of the paper's loss for every row of every table."""
    tables = {name: values.clone().requires_grad_() for name, values in model.parameters.items()}
    places = {
        "subject": positives[:, 0],
        "relation": positives[:, 1],
        "object": torch.cat([positives[:, 2:], negatives], dim=1),
    }
    rows = {
        role: {t.name: tables[t.name][where] for t in model.tables if role in t.roles} for role, where in places.items()
    }
    scores = model.score_rows(rows["subject"], rows["relation"], rows["object"])
    labels = torch.zeros_like(scores)
    labels[:, 0] = 1
    loss = torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
    return dict(zip(tables, torch.autograd.grad(loss, list(tables.values())), strict=True))


def touched_rows(model: Any, positives: Tensor, negatives: Tensor) -> dict[str, Tensor]:
    """Which rows of each table a batch reads."""
    places = {
        "subject": positives[:, 0],
        "relation": positives[:, 1],
        "object": torch.cat([positives[:, 2], negatives.flatten()]),
    }
    found = {}
    for table in model.tables:
        mask = torch.zeros(model.rows_of(table), dtype=torch.bool)
        for role in table.roles:
            mask[places[role]] = True
        found[table.name] = mask
    return found
