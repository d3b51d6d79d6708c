"""Base of variants of MuRE and MuRP whose relations have another linear map instead of a diagonal matrix."""

from __future__ import annotations

from abc import abstractmethod

from torch import Tensor

from murp.geometry import Euclidean, MobiusGeometry, PoincareBall
from murp.geometry.euclidean import squared_distance_from_products
from murp.models.model import Candidate, Model, Numbers, Query, Rows, Table, squared_norm
from murp.models.shared.biases import bias_tables
from murp.models.shared.dot_product import Linear
from murp.settings import setting


class LinearMap(Model):
    """φ = -d(M_r ⊗ e_s, e_o ⊕ r)² + b_s + b_o with a linear map M_r, M ⊗ x = exp₀(M log₀(x)).

    The query is x = M_r ⊗ e_s and r (B, d) each; the distance follows from inner products.
    """

    drops_queries = True

    @abstractmethod
    def space(self) -> MobiusGeometry:
        """The space of entities and translations."""

    @abstractmethod
    def map_tables(self) -> tuple[Table, ...]:
        """The relations' parameters of M_r."""

    @abstractmethod
    def mapped(self, tangent: Tensor, relation: Rows) -> Tensor:
        """M_r u: vectors (B, d) of the tangent space at 0 under their relations."""

    @property
    def geometry(self) -> MobiusGeometry:
        return self.space()

    def declare(self) -> tuple[Table, ...]:
        space, size = self.space(), (self.dim,)
        return (
            Table("entity", "entity", size, space),
            *self.map_tables(),
            Table("translation", "relation", size, space),
            *bias_tables("both"),
        )

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        space, r = self.space(), relation["translation"]
        x = self.dropped(space.exp0(self.mapped(space.log0(subject["entity"]), relation)))
        numbers = {"xx": squared_norm(x), "rr": squared_norm(r), "xr": (x * r).sum(-1)}
        return Query((x, r), numbers | {"subject_bias": subject["subject_bias"]})

    def move_object(self, points: Tensor, relation: Rows) -> Tensor:
        return self.space().add(points, relation["translation"])

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        xv, vr = products
        xx, rr, xr = query["xx"], query["rr"], query["xr"]
        squared = self.space().squared_distance_to_sum_from_products(xx, candidate["square"], rr, xv, xr, vr)
        return query["subject_bias"] + candidate["object_bias"] - squared


class FlatMap(LinearMap):
    """In Euclidean space: φ = -|M_r e_s - (e_o + r)|² + b_s + b_o. The query is y = M_r e_s - r (B, d)."""

    def space(self) -> MobiusGeometry:
        return Euclidean()

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        y = self.dropped(self.mapped(subject["entity"], relation)) - relation["translation"]
        return Query((y,), {"yy": squared_norm(y), "subject_bias": subject["subject_bias"]})

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        """M_r e_s, which is compared with e_o + r."""
        return self.mapped(points.to(self.dtype), relation).to(points.dtype)

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        squared = squared_distance_from_products(query["yy"], candidate["square"], products[0])
        return query["subject_bias"] + candidate["object_bias"] - squared

    def linear(self, query: Query, candidate: Candidate) -> Linear:
        """2y, v, b_s - |y|², b_o - |v|²: φ = ⟨2y, v⟩ + … but for the rounding of a distance below 0."""
        (y,), (v,) = query.vectors, candidate.vectors
        mine, theirs = query.numbers, candidate.numbers
        return 2 * y, v, mine["subject_bias"] - mine["yy"], theirs["object_bias"] - theirs["square"]


class BallMap(LinearMap):
    """On the Poincaré ball: φ = -d_B(exp₀(M_r log₀(h_s)), h_o ⊕ r_h)² + b_s + b_o."""

    curvature: float = setting(1.0, "curvature c of the ball, whose radius is 1/√c", above=0)

    def space(self) -> MobiusGeometry:
        return PoincareBall(self.curvature)
