"""Base of models whose entities are tangent vectors at the origin of a ball with a learned curvature for each
relation."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar

from torch import Tensor
from torch.nn.functional import softplus

from murp.geometry import poincare
from murp.kernels import tangent_distances
from murp.models.model import Model, Numbers, Query, Rows, Table, squared_norm
from murp.models.shared.biases import bias_tables
from murp.settings import setting

ONE = math.log(math.e - 1)  # softplus(ONE) = 1


class TangentDistance(Model):
    """φ = -d_c(x(s, r), exp₀(v_o))² + b_s + b_o on the ball of curvature -c, c = c_r learned by relation.

    An entity is a vector v of the tangent space at 0, where every ball of every curvature has its points. The query is
    x (B, d) in the ball. The distance follows from |x|², ⟨x,v⟩, |v|² and c.
    """

    curvature: float = setting(1.3, "curvature c of the ball; if it is learned, its initial value", above=0)
    learn_curvature: str = setting(
        "relation",
        "whether c is learned: no, one for all relations, or one for each relation",
        choices=("no", "all", "relation"),
    )

    drops_queries = True
    curvature_shape: ClassVar[tuple[int, ...]] = ()  # of a relation's c: one number, or one for each of several spaces

    @abstractmethod
    def relation_tables(self) -> tuple[Table, ...]:
        """The relations' parameters but the curvature."""

    @abstractmethod
    def moved(self, subject: Tensor, relation: Rows, c: Tensor) -> Tensor:
        """x (B, d) in the ball of c (B, 1): subjects' tangent vectors (B, d) moved by their relations."""

    def declare(self) -> tuple[Table, ...]:
        of = {"no": (), "all": ("shared",), "relation": ("relation",)}[self.learn_curvature]
        size = self.curvature_shape
        curvature = tuple(Table("curvature", kind, size, initial="zero") for kind in of)  # type: ignore[arg-type]
        return (Table("entity", "entity", (self.dim,)), *self.relation_tables(), *curvature, *bias_tables("both"))

    def curvatures(self, relation: Rows, shared: Rows) -> Tensor:
        """c > 0 (B, …): ``curvature`` times softplus(p + ONE) of the parameter p, which begins at 0."""
        p = relation["curvature"] if "curvature" in relation else shared.get("curvature")
        rows = next(iter(relation.values()))
        shape = (len(rows), *self.curvature_shape)
        return rows.new_full(shape, self.curvature) if p is None else (self.curvature * softplus(p + ONE)).expand(shape)

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        c = self.curvatures(relation, shared)
        x = self.moved(subject["entity"], relation, c[:, None])
        if self.training and self.query_dropout:
            x = poincare.exp0(self.dropped(poincare.log0(x, c=c[:, None])), c=c[:, None])
        return Query((x,), {"xx": squared_norm(x), "c": c, "subject_bias": subject["subject_bias"]})

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        """log₀ of the query, since the entities are tangent vectors."""
        c = self.curvatures(relation, self.rows("shared"))[:, None]
        return poincare.log0(self.moved(points.to(self.dtype), relation, c), c=c).to(points.dtype)

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        squared = squared_distance(query["xx"], candidate["square"], products[0], query["c"])
        return query["subject_bias"] + candidate["object_bias"] - squared


def squared_distance(xx: Tensor, vv: Tensor, xv: Tensor, c: Tensor) -> Tensor:
    """d(x, exp₀(v))² from |x|², |v|², ⟨x,v⟩ and c, which broadcast; by the quickest way."""
    if tangent_distances.fits(xx, vv, xv, c):
        return tangent_distances.squared(xx, vv.expand(xv.shape), xv, c)
    return poincare.squared_distance_to_tangent_from_products(xx, vv, xv, c)


def moved_by(tangent: Tensor, translation: Tensor, c: Tensor) -> Tensor:
    """exp₀(u) ⊕ exp₀(r) of tangent vectors (B, d) at 0, in the balls of c (B, 1)."""
    return poincare.mobius_add(poincare.exp0(tangent, c=c), poincare.exp0(translation, c=c), c=c)
