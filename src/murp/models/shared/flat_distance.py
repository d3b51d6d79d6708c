"""Base of models whose score is minus a squared Euclidean distance to the candidate, plus biases."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from murp.geometry.euclidean import squared_distance_from_products
from murp.models.model import Candidate, Model, Numbers, Query, Rows, Table, squared_norm
from murp.models.shared.biases import bias_tables
from murp.models.shared.dot_product import Linear


class FlatDistance(Model):
    """φ = -|x(s, r) - o|² + b_s + b_o, through |x|², ⟨x,o⟩ and |o|²."""

    drops_queries = True

    @abstractmethod
    def relation_tables(self) -> tuple[Table, ...]:
        """The relations' parameters."""

    @abstractmethod
    def moved(self, subject: Tensor, relation: Rows) -> Tensor:
        """x (B, d): subjects (B, d) moved by their relations."""

    def declare(self) -> tuple[Table, ...]:
        return (Table("entity", "entity", (self.dim,)), *self.relation_tables(), *bias_tables("both"))

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        x = self.dropped(self.moved(subject["entity"], relation))
        return Query((x,), {"xx": squared_norm(x), "subject_bias": subject["subject_bias"]})

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        squared = squared_distance_from_products(query["xx"], candidate["square"], products[0])
        return query["subject_bias"] + candidate["object_bias"] - squared

    def linear(self, query: Query, candidate: Candidate) -> Linear:
        """2x, o, b_s - |x|², b_o - |o|²: φ = ⟨2x, o⟩ + … but for the rounding of a distance below 0."""
        (x,), (v,) = query.vectors, candidate.vectors
        mine, theirs = query.numbers, candidate.numbers
        return 2 * x, v, mine["subject_bias"] - mine["xx"], theirs["object_bias"] - theirs["square"]
