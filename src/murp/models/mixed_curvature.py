"""Mixed curvature: one part of an entity in a ball, one on a sphere, one in Euclidean space."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import euclidean, poincare, sphere
from murp.models.hyperbolic_rotations import HYPERBOLIC
from murp.models.model import Candidate, Numbers, Query, Rows, Table, squared_norm
from murp.models.shared.tangent_distance import TangentDistance, moved_by, squared_distance
from murp.settings import setting


class MixedCurvature(TangentDistance):
    """φ = -d(m_r ⊗ s ⊕ r, o)² + b_s + b_o in the product of a ball, a sphere and Euclidean space.

    s, o and r are vectors (d) of the tangent space at the origin, cut into the three parts; m_r stretches every
    coordinate and begins at 1; ⊕ r is the translation of each part that takes its origin to exp₀(r). The curvatures of
    the ball (-c_r) and of the sphere (c'_r) are learned as ``learn_curvature`` says. In a product d² is the sum of the
    parts' d², so

        φ = -d_B(exp₀(m_r s) ⊕ exp₀(r), exp₀(o))² - d_S(…)² - |m_r s + r - o|² + b_s + b_o.

    The query is a point of the ball (B, k), the side of a point of the sphere (B, l) with its height, and a vector
    (B, d - k - l). MuRP's score (Balažević, Allen, Hospedales, NeurIPS 2019), with the translation on the subject, in
    the spaces of Gu, Sala, Gunel, Ré: Learning Mixed-Curvature Representations in Product Spaces, ICLR 2019.
    """

    spherical_dim: int = setting(0, "dimension of the part on the sphere; 0: a third of dim", least=0)
    flat_dim: int = setting(0, "dimension of the part in Euclidean space; 0: a third of dim", least=0)
    drops_queries = False
    curvature_shape = (2,)
    usual: ClassVar[Mapping[str, Any]] = HYPERBOLIC

    @classmethod
    def refuse(cls, config: Any) -> None:
        super().refuse(config)
        widths(config.dim, config.spherical_dim, config.flat_dim)

    def declare(self) -> tuple[Table, ...]:
        self.widths = widths(self.dim, self.spherical_dim, self.flat_dim)
        return super().declare()

    def relation_tables(self) -> tuple[Table, ...]:
        size = (self.dim,)
        return (Table("stretch", "relation", size, initial="one"), Table("translation", "relation", size))

    def parts(self, rows: Tensor) -> tuple[Tensor, ...]:
        """Rows (…, d) cut into those of ball, sphere and Euclidean space."""
        return torch.split_with_sizes(rows, self.widths, -1)

    def translated(self, subject: Tensor, relation: Rows, c: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Subjects (B, d) moved by their relations: in the ball, height and side on the sphere, in Euclidean space."""
        ball, round_, flat = self.parts(relation["stretch"] * subject)
        by_ball, by_round, by_flat = self.parts(relation["translation"])
        height, side = sphere.translate_tangent(round_, by_round, c=c[:, 1:])
        return moved_by(ball, by_ball, c[:, :1]), height, side, flat + by_flat

    def query(self, subject: Rows, relation: Rows, shared: Rows) -> Query:
        c = self.curvatures(relation, shared)
        x, height, side, y = self.translated(subject["entity"], relation, c)
        numbers = {"xx": squared_norm(x), "height": height[:, 0], "yy": squared_norm(y)}
        curvatures = {"c": c[:, 0], "spherical_c": c[:, 1]}
        return Query((x, side, y), numbers | curvatures | {"subject_bias": subject["subject_bias"]})

    def moved(self, subject: Tensor, relation: Rows, c: Tensor) -> Tensor:
        """log₀ of where the subjects are moved to, (B, d), with c (B, 2)."""
        x, height, side, y = self.translated(subject, relation, c)
        return torch.cat([poincare.log0(x, c=c[:, :1]), sphere.to_tangent(height, side, c=c[:, 1:]), y], -1)

    def move_subject(self, points: Tensor, relation: Rows) -> Tensor:
        c = self.curvatures(relation, self.rows("shared"))
        return self.moved(points.to(self.dtype), relation, c).to(points.dtype)

    def candidate(self, entity: Rows, shared: Rows) -> Candidate:
        parts = self.parts(entity["entity"])
        squares = dict(zip(("ball", "sphere", "flat"), map(squared_norm, parts), strict=True))
        return Candidate(parts, squares | {"object_bias": entity["object_bias"]})

    def ending(self, products: tuple[Tensor, ...], query: Numbers, candidate: Numbers) -> Tensor:
        ball, round_, flat = products
        squared = (
            squared_distance(query["xx"], candidate["ball"], ball, query["c"])
            + sphere.squared_distance_to_tangent_from_products(
                query["height"], candidate["sphere"], round_, query["spherical_c"]
            )
            + euclidean.squared_distance_from_products(query["yy"], candidate["flat"], flat)
        )
        return query["subject_bias"] + candidate["object_bias"] - squared


def widths(dim: int, spherical: int, flat: int) -> list[int]:
    """How many of ``dim`` numbers ball, sphere and Euclidean space have."""
    spherical, flat = spherical or dim // 3, flat or dim // 3
    ball = dim - spherical - flat
    if min(ball, spherical, flat) < 1:
        raise ConfigError(
            f"mixed curvature cuts dim = {dim} into a part of the ball, one of the sphere ({spherical}) and a flat one "
            f"({flat}): each needs 1 or more. Choose a larger --dim, or a smaller --spherical-dim or --flat-dim."
        )
    return [ball, spherical, flat]
