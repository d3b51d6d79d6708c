"""The multi-relational score of the paper, assembled from a geometry, a relational transformation and a bias.

    φ(e_s, r, e_o) = -d(e_s^(r), e_o^(r))² + b_s + b_o        (the paper's equation 4)

MuRP is this score on the Poincaré ball, MuRE in Euclidean space; the published transformation is
e_s^(r) = R ⊗ e_s, e_o^(r) = e_o ⊕ r. Every row of the paper's Table 2 is another choice of parts.

Balažević, Allen, Hospedales: Multi-relational Poincaré Graph Embeddings, NeurIPS 2019.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import cast

from torch import Tensor

from murp.geometry import Euclidean, MobiusGeometry, PoincareBall
from murp.models.model import Candidate, Model, Numbers, Query, Rows, Table, squared_norm
from murp.models.shared.biases import BIASES, Bias, bias_tables
from murp.models.shared.transformations import TRANSFORMATIONS, Transformation
from murp.settings import setting


class MultiRelational(Model):
    """-d(subject moved by r, object moved by r)² plus biases.

    The distance to a moved object needs only inner products: of the moved subject x, the relation's
    vector r and the object v, all of which come from matrix products when the objects are shared.
    """

    transformation: str = setting(
        "published",
        "how a relation transforms head and tail (the paper's table 2)",
        choices=tuple(TRANSFORMATIONS),
    )
    bias: str = setting("both", "what is added to minus the squared distance (the paper's table 2)", choices=BIASES)
    drops_queries = True

    @property
    def parts(self) -> Transformation:
        """Which sides a relation stretches and translates."""
        return TRANSFORMATIONS[self.transformation]

    @property
    def published(self) -> bool:
        """Whether it is MuRP or MuRE with the parts of the paper: what compiled loops for the CPU know."""
        return self.transformation == "published" and self.bias == "both" and self.has_space_of_paper

    @property
    def has_space_of_paper(self) -> bool:
        """Whether its space is the Poincaré ball or Euclid's, whose formulas are written out in all fused kernels."""
        return isinstance(self.space(), PoincareBall | Euclidean)

    @abstractmethod
    def space(self) -> MobiusGeometry:
        """The space of the entities."""

    @property
    def geometry(self) -> MobiusGeometry:
        return self.space()

    def declare(self) -> tuple[Table, ...]:
        space, bias = self.space(), cast(Bias, self.bias)
        point = Table("entity", "entity", (self.dim,), space)
        return (point, *self.parts.tables(space, self.dim), *bias_tables(bias))

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        """e_s^(r): points (…, d) under relation rows that broadcast against them."""
        if self.parts.stretch_subject:
            points = self.geometry.stretch(relation["subject_stretch"], points)
        if self.parts.translate_subject:
            points = self.geometry.add(points, relation["translation"])
        return points

    def move_object(self, points: Tensor, relation: Rows) -> Tensor:
        """e_o^(r): points (…, d) under relation rows that broadcast against them."""
        if self.parts.stretch_object:
            points = self.geometry.stretch(relation["object_stretch"], points)
        if self.parts.translate_object:
            points = self.geometry.add(points, relation["translation"])
        return points

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        """x = e_s^(r) and r, both to meet v; of a stretched object M v: x M and r M to meet log₀(v), and M² its square.

        Numbers: xx = |x|², rr = |r|², xr = ⟨x,r⟩, what is added for the subject.
        """
        x = self.dropped(self.move_subject(subject["entity"], relation))
        numbers = {"xx": squared_norm(x)}
        vectors = [x]
        if self.parts.translate_object:
            r = relation["translation"]
            numbers |= {"rr": squared_norm(r), "xr": (x * r).sum(-1)}
            vectors.append(r)
        if self.parts.stretch_object:
            stretch = relation["object_stretch"]
            vectors = [*(vector * stretch for vector in vectors), stretch * stretch]
        if self.bias == "norm":
            numbers["added"] = squared_norm(subject["entity"])
        elif "subject_bias" in subject:
            numbers["added"] = subject["subject_bias"]
        return Query(tuple(vectors), numbers)

    @property
    def plain_candidates(self) -> bool:
        return not self.parts.stretch_object

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        """v, or log₀(v) for every vector and its square for the last where objects are stretched."""
        if not self.parts.stretch_object:
            return super().candidate(entity, shared)
        v = entity["entity"]
        tangent = self.geometry.log0(v)
        numbers = {name: values for name, values in entity.items() if name != "entity"}
        both = (tangent, tangent) if self.parts.translate_object else (tangent,)
        return Candidate((*both, tangent * tangent), {"square": squared_norm(v), **numbers})

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        """Equation 4 through inner products."""
        geometry, xx, vv = self.geometry, query["xx"], candidate["square"]
        if self.parts.stretch_object:
            # M ⊗ v = κ · M log₀(v), with κ a function of |M log₀ v|² alone.
            *products_, square = products
            scale = geometry.exp0_scale(square)
            vv = scale * scale * square
            products = tuple(scale * product for product in products_)
        if self.parts.translate_object:
            xv, vr = products
            rr = query["rr"]
            squared = geometry.squared_distance_to_sum_from_products(xx, vv, rr, xv, query["xr"], vr)
        else:
            (xv,) = products
            squared = geometry.squared_distance_from_products(xx, vv, xv)
        if self.bias == "transformed-norm":
            if self.parts.translate_object:
                vv = geometry.squared_norm_of_sum_from_products(vv, rr, vr)
            return xx + vv - squared
        if self.bias == "norm":
            return query["added"] + candidate["square"] - squared
        scores = -squared
        if "added" in query:
            scores = scores + query["added"]
        if "object_bias" in candidate:
            scores = scores + candidate["object_bias"]
        return scores


class MuRP(MultiRelational):
    """MuRP: φ = -d_B(exp₀(R log₀(h_s)), h_o ⊕ r_h)² + b_s + b_o on the Poincaré ball (equation 5)."""

    curvature: float = setting(1.0, "curvature c of the ball, whose radius is 1/√c", above=0)

    def space(self) -> MobiusGeometry:
        return PoincareBall(self.curvature)


class MuRE(MultiRelational):
    """MuRE: φ = -|R e_s - (e_o + r)|² + b_s + b_o in Euclidean space (equation 4)."""

    def space(self) -> MobiusGeometry:
        return Euclidean()

    def linear(self, query: Query, candidate: Candidate) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None] | None:
        """-|y - v|² + b_s + b_o = 2⟨y,v⟩ - |y|² + b_s - |v|² + b_o with y = R e_s - r.

        Not if objects are stretched, nor if norms replace biases.
        """
        if self.parts.stretch_object or self.bias in ("norm", "transformed-norm"):
            return None
        y, *r = query.vectors
        if r:
            y = y - r[0]
        a, c = -squared_norm(y), -candidate.numbers["square"]
        if "added" in query.numbers:
            a = a + query.numbers["added"]
        if "object_bias" in candidate.numbers:
            c = c + candidate.numbers["object_bias"]
        return 2 * y, candidate.vectors[0], a, c


__all__ = ["Bias", "MuRE", "MuRP", "MultiRelational"]
