"""HyboNet: a Lorentz linear map for each relation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import dropout

from murp.kernels.matrices import applied_at
from murp.models.model import Candidate, Query, Rows, Table
from murp.models.shared.biases import bias_tables
from murp.models.shared.dot_product import DotProduct
from murp.settings import Span, setting

LEAST_TIME = 1.1  # of what a relation makes of a subject; the hyperboloid's own is 1


class HyboNet(DotProduct):
    """HyboNet: φ = 2 + 2⟨f_r(x_s), x_o⟩ + b_s + b_o: 2 - squared Lorentzian distance, with ⟨x,y⟩ = -x₀y₀ + Σ xᵢyᵢ.

    An entity is a point x = (√(1 + |u|²), u) of the hyperboloid, held as u (d), which any optimizer moves freely. With
    y = M_r x + a_r, M_r (d + 1, d + 1), the map is f_r(x) = (t, √(t² - 1) y'/|y'|), its time t = 1.1 + σ(y₀) e^{k_r}.
    The inner product is an ordinary one if the query's time is negated: the query is (B, d + 1). In training there is
    dropout on x, as in the authors' linear layer.

    Chen, Han, Lin, Zhao, Liu, Li, Sun, Zhou: Fully Hyperbolic Neural Networks, ACL 2022.
    """

    input_dropout: float = setting(0.0, "dropout rate of the head's coordinates", least=0, below=1, search=Span(0, 0.5))
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "one-vs-all",
        "optimizer": "adam",
        "lr": 0.002,
        "lr_schedule": "linear",
        "batch_size": 1024,
        "regularizer": "l2",
        "regularizer_weight": 0.01,
    }

    def declare(self) -> tuple[Table, ...]:
        d = self.dim + 1
        return (
            Table("entity", "entity", (self.dim,)),
            Table("matrix", "relation", (d, d), initial="xavier"),
            Table("offset", "relation", (d,)),
            Table("log_scale", "relation", (), initial="zero"),
            *bias_tables("both"),
        )

    @property
    def uses_chance(self) -> bool:
        return super().uses_chance or self.input_dropout > 0

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        x = dropout(on_hyperboloid(subject["entity"]), self.input_dropout, self.training)
        y = applied_at(relation, "matrix", x) + relation["offset"]
        time = LEAST_TIME + torch.sigmoid(y[:, :1]) * relation["log_scale"].exp()[:, None]
        space = self.dropped(y[:, 1:])  # the length that the time asks for follows
        length = (space.square().sum(-1, keepdim=True) + torch.finfo(y.dtype).tiny).sqrt()
        q = torch.cat([-time, (time * time - 1).sqrt() / length * space], -1)
        return Query((2 * q,), {"added": subject["subject_bias"] + 2})

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        """u of f_r(x), without its time."""
        subject = {"entity": points.to(self.dtype), "subject_bias": points.new_zeros(len(points), dtype=self.dtype)}
        return (self.query(subject, relation, {}).vectors[0][:, 1:] / 2).to(points.dtype)

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        return Candidate((on_hyperboloid(entity["entity"]),), {"object_bias": entity["object_bias"]})


def on_hyperboloid(u: Tensor) -> Tensor:
    """(√(1 + |u|²), u): vectors (…, d) → points (…, d + 1)."""
    return torch.cat([(1 + u.square().sum(-1, keepdim=True)).sqrt(), u], -1)
