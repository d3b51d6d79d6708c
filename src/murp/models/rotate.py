"""RotatE: a relation rotates complex numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from murp.models.model import Candidate, Model, Query, Rows, Table
from murp.models.shared.complex_numbers import Paired, modulus, times
from murp.settings import Span, setting


class RotatE(Paired, Model):
    """RotatE: φ = γ - Σᵢ |sᵢ e^{iθᵢ} - oᵢ| with s, o ∈ ℂᵏ, held as d = 2k real numbers, and angles θ = π p_r ∈ ℝᵏ.

    The query is x = s e^{iθ} (B, d). A sum of moduli has no product form and is computed in tiles.

    Sun, Deng, Nie, Tang: RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space, ICLR 2019.
    """

    gamma: float = setting(6.0, "the score of a perfect match: φ = γ - distance", least=0, search=Span(2, 24, log=True))
    initial_scale = 0.1
    drops_queries = True
    products = False
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "self-adversarial",
        "temperature": 1.0,
        "negatives": 250,
        "optimizer": "adam",
        "lr": 0.003,
        "batch_size": 500,
    }

    def declare(self) -> tuple[Table, ...]:
        half = self.half()
        return (Table("entity", "entity", (self.dim,)), Table("phase", "relation", (half,), initial="uniform"))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        angle = math.pi * relation["phase"]
        return Query((self.dropped(times(subject["entity"], torch.cat([angle.cos(), angle.sin()], -1))),))

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        return Candidate((entity["entity"],))

    def factors(self, subject: Rows, relation: Rows, objects: Rows) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        """|s|, |o| (B, k); a relation's e^{iθ} have modulus 1 and need no regularizer."""
        return modulus(subject["entity"]), (), modulus(objects["entity"])

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        return self.gamma - modulus(query.vectors[0] - candidate.vectors[0]).sum(-1)
