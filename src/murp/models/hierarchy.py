"""Embeddings of one hierarchy: a score that is minus a distance, without parameters of relations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from murp.geometry import Geometry, Hyperboloid, PoincareBall
from murp.models.model import Candidate, Model, Query, Rows, Table


class Distance(Model):
    """φ = -d(s, o), the same for every relation. The query is the subject's point.

    Training uses each fact only in the direction of its subject: a node should be nearer to its ancestors than to other
    nodes. Points of one hierarchy are close to each other far from the origin, so distances are computed from
    differences of points, never from inner products.
    """

    products = False
    reciprocals = False
    usual: ClassVar[Mapping[str, Any]] = {
        "objective": "softmax",
        "corruption": "relatives",
        "negatives": 10,
        "optimizer": "adagrad",
        "lr": 1.0,
        "lr_schedule": "linear",
        "batch_size": 128,
        "dtype": "float64",
        "validate_every": 0,
    }

    @abstractmethod
    def space(self) -> Geometry:
        """The space of the entities."""

    def width(self) -> int:
        """Numbers of a row."""
        return self.dim

    def declare(self) -> tuple[Table, ...]:
        return (Table("entity", "entity", (self.width(),), self.space()),)

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        return Query((subject["entity"],))

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        return Candidate((entity["entity"],))

    def tile(self, query: Query, candidate: Candidate) -> Tensor:
        return -self.space().distance(query.vectors[0], candidate.vectors[0])


class Poincare(Distance):
    """Poincaré embeddings: φ = -d(s, o) on the ball, d = 2 asinh(|s - o| / √((1 - |s|²)(1 - |o|²))).

    Nickel, Kiela: Poincaré Embeddings for Learning Hierarchical Representations, NeurIPS 2017. There the step is
    s - η ∇_R; here it follows the geodesic.
    """

    def space(self) -> Geometry:
        return PoincareBall()


class Lorentz(Distance):
    """Their Lorentz form: φ = -d(s, o) on the hyperboloid, d = arcosh(-⟨s,o⟩). A row has d + 1 numbers, the time first.

    Nickel, Kiela: Learning Continuous Hierarchies in the Lorentz Model of Hyperbolic Geometry, ICML 2018.
    """

    def space(self) -> Geometry:
        return Hyperboloid()

    def width(self) -> int:
        return self.dim + 1
