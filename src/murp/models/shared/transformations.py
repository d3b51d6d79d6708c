"""How a relation transforms its subject and its object before their distance is computed (the paper's Table 2,
left)."""

from __future__ import annotations

from dataclasses import dataclass

from murp.geometry import Euclidean, Geometry
from murp.models.model import Table


@dataclass(frozen=True)
class Transformation:
    """Which side a relation stretches by a diagonal matrix and which it translates by a vector.

    A side that has both is stretched first: R_o e_o + r.
    """

    stretch_subject: bool
    translate_subject: bool
    stretch_object: bool
    translate_object: bool

    def tables(self, geometry: Geometry, dim: int) -> tuple[Table, ...]:
        """The relation's parameters: the stretches are Euclidean, the translation a point of the geometry."""

        tables = []
        if self.stretch_subject:
            tables.append(Table("subject_stretch", "relation", (dim,), Euclidean(), "uniform", ("relation",)))
        if self.stretch_object:
            tables.append(Table("object_stretch", "relation", (dim,), Euclidean(), "uniform", ("relation",)))
        if self.translate_subject or self.translate_object:
            tables.append(Table("translation", "relation", (dim,), geometry, "normal", ("relation",)))
        return tuple(tables)


TRANSFORMATIONS: dict[str, Transformation] = {
    # d(R e_s, e_o + r), the published model
    "published": Transformation(True, False, False, True),
    # d(e_s, e_o + r)
    "translation-only": Transformation(False, False, False, True),
    # d(R e_s, e_o)
    "stretch-only": Transformation(True, False, False, False),
    # d(R_s e_s, R_o e_o + r)
    "stretch-both": Transformation(True, False, True, True),
    # d(e_s + r, R e_o)
    "swapped": Transformation(False, True, True, False),
}
