"""Models of a few lines with what MuRP and MuRE do not have: products, complex numbers, no products at all, two vectors
for each entity."""

from __future__ import annotations

import torch
from torch import Tensor

from murp.models import Candidate, Model, Query, Rows, Table


class Products(Model):
    """Σ_j s_j r_j o_j, a product with the transposed relation: DistMult."""

    drops_queries = True

    def declare(self) -> tuple[Table, ...]:
        return Table("entity", "entity", (self.dim,)), Table("factor", "relation", (self.dim,))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((self.dropped(subject["entity"] * relation["factor"]),))

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0]

    def linear(self, query: Query, candidate: Candidate) -> tuple[Tensor, Tensor, None, None]:
        return query.vectors[0], candidate.vectors[0], None, None

    def converse(self, objects: Rows, relation: Rows) -> Tensor:
        return objects["entity"] * relation["factor"]


class WithRelationBias(Products):
    """Products and a number of each relation, which is no vector."""

    def declare(self) -> tuple[Table, ...]:
        return *super().declare(), Table("relation_bias", "relation", ())

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"] * relation["factor"],), {"bias": relation["relation_bias"]})

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0] + query["bias"]


class Moduli(Products):
    """Products whose coordinates are d/2 real parts, then d/2 imaginary ones, for N3 alone."""

    def factors(self, subject: Rows, relation: Rows, objects: Rows) -> tuple[Tensor, tuple[Tensor, ...], Tensor]:
        moduli = [
            torch.hypot(*values.chunk(2, -1)) for values in (subject["entity"], relation["factor"], objects["entity"])
        ]
        return moduli[0], (moduli[1],), moduli[2]


class Blocks(Model):
    """-Σ_j |s_j + r_j - o_j|: a score without products, TransE with L1."""

    products = False

    def declare(self) -> tuple[Table, ...]:
        return Table("entity", "entity", (self.dim,)), Table("translation", "relation", (self.dim,))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"] + relation["translation"],))

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        return -(query.vectors[0] - candidate.vectors[0]).abs().sum(-1)


class Statistics(Products):
    """A model that says it normalises batches of queries."""

    keeps_statistics = True
    drops_queries = False


class TwoVectors(Model):
    """CP: Σ_j s_j r_j o_j with other vectors for subjects than for objects."""

    def declare(self) -> tuple[Table, ...]:
        return (
            Table("entity", "entity", (self.dim,), roles=("object",)),
            Table("subject", "entity", (self.dim,), roles=("subject",)),
            Table("relation", "relation", (self.dim,)),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["subject"] * relation["relation"],))

    def ending(self, products: tuple[Tensor, ...], query: Rows, candidate: Rows) -> Tensor:
        return products[0]
