"""The multi-relational score, assembled from a geometry, a relational transformation and a bias.

    φ(e_s, r, e_o) = -d(e_s^(r), e_o^(r))² + b_s + b_o        (the paper's equation 4)

MuRP is this score on the Poincaré ball, MuRE in Euclidean space; the published transformation is
e_s^(r) = R ⊗ e_s, e_o^(r) = e_o ⊕ r. Every row of the paper's Table 2 is another choice of parts.
"""

from __future__ import annotations

import torch
from torch import Tensor

from murp.geometry import MobiusGeometry
from murp.models.biases import Bias, bias_tables
from murp.models.model import Model, Rows, Table, inner, squared_norm
from murp.models.transformations import TRANSFORMATIONS, Transformation


class MultiRelational(Model):
    """-d(subject moved by r, object moved by r)² plus biases.

    The distance to a moved object needs only inner products: of the moved subject x, the relation's
    vector r and the object v, all of which come from matrix products when the objects are shared.
    """

    def __init__(
        self,
        num_entities: int,
        num_relations: int,
        dim: int,
        *,
        geometry: MobiusGeometry,
        transformation: Transformation = TRANSFORMATIONS["published"],
        bias: Bias = "both",
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(num_entities, num_relations, dtype=dtype)
        self.dim = dim
        self.geometry = geometry
        self.transformation = transformation
        self.bias = bias
        point = Table("entity", "entity", (dim,), geometry, "normal", ("subject", "object"))
        self.tables = (point, *transformation.tables(geometry, dim), *bias_tables(bias))

    def __repr__(self) -> str:
        sizes = f"{self.num_entities:,} entities, {self.num_relations:,} relations with reciprocals"
        tables = ", ".join(table.name for table in self.tables)
        return f"MultiRelational({self.geometry.name} d={self.dim}, {sizes}; {self.dtype}: {tables})"

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        """e_s^(r): points (…, d) under relation rows that broadcast against them."""
        if self.transformation.stretch_subject:
            points = self.geometry.stretch(relation["subject_stretch"], points)
        if self.transformation.translate_subject:
            points = self.geometry.add(points, relation["translation"])
        return points

    def move_object(self, points: Tensor, relation: Rows) -> Tensor:
        """e_o^(r): points (…, d) under relation rows that broadcast against them."""
        if self.transformation.stretch_object:
            points = self.geometry.stretch(relation["object_stretch"], points)
        if self.transformation.translate_object:
            points = self.geometry.add(points, relation["translation"])
        return points

    def score_rows(self, subject: Rows, relation: Rows, objects: Rows) -> Tensor:
        """Equation 4 through inner products; shapes as in :meth:`Model.score_rows`."""
        geometry = self.geometry
        x = self.move_subject(subject["entity"], relation)
        v = objects["entity"]
        xx = squared_norm(x).unsqueeze(-1)

        if self.transformation.stretch_object:
            # M ⊗ v = κ · M log₀(v), with κ a function of |M log₀ v|² alone.
            stretch, tangent = relation["object_stretch"], geometry.log0(v)
            square = inner(stretch * stretch, tangent * tangent)
            scale = geometry.exp0_scale(square)
            vv = scale * scale * square

            def with_object(a: Tensor) -> Tensor:
                return scale * inner(a * stretch, tangent)
        else:
            vv = squared_norm(v)

            def with_object(a: Tensor) -> Tensor:
                return inner(a, v)

        if self.transformation.translate_object:
            r = relation["translation"]
            rr, xr = squared_norm(r).unsqueeze(-1), (x * r).sum(-1, keepdim=True)
            vr = with_object(r)
            squared = geometry.squared_distance_to_sum_from_products(xx, vv, rr, with_object(x), xr, vr)
        else:
            squared = geometry.squared_distance_from_products(xx, vv, with_object(x))

        if self.bias == "norm":
            return squared_norm(subject["entity"]).unsqueeze(-1) + squared_norm(objects["entity"]) - squared
        if self.bias == "transformed-norm":
            if self.transformation.translate_object:
                vv = geometry.squared_norm_of_sum_from_products(vv, rr, vr)
            return xx + vv - squared
        scores = -squared
        if "subject_bias" in subject:
            scores = scores + subject["subject_bias"].unsqueeze(-1)
        if "object_bias" in objects:
            scores = scores + objects["object_bias"]
        return scores
