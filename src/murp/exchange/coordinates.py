"""Tables of points in the coordinates asked for, and back."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import PoincareBall, hyperboloid, poincare
from murp.models import Model

Coordinates = Literal["poincare", "lorentz", "tangent"]
COORDINATES: tuple[Coordinates, ...] = ("poincare", "lorentz", "tangent")

IN_WORDS = {
    "poincare": "points of the Poincaré ball {x : c|x|² < 1}, as the model holds them",
    "lorentz": "points of the hyperboloid -x₀² + x₁² + … + x_d² = -1/c, x₀ > 0, the time component first; float64",
    "tangent": "log₀ of the points of the Poincaré ball, artanh(√c|x|) x/(√c|x|): the point lies at the distance 2|v| "
    "from the origin; float64",
    "euclidean": "points of Euclidean space, as the model holds them",
    "hyperboloid": "points of the hyperboloid, as the model holds them, the time component first",
}


def in_words(coordinates: str) -> str:
    """What they are; any other geometry's are what the model holds."""
    return IN_WORDS.get(coordinates, f"points of {coordinates} space, as the model holds them")


def own_coordinates(model: Model) -> str:
    """Those the model holds its points in."""
    return str(model.geometry.name)


def converted(model: Model, coordinates: Coordinates | None) -> dict[str, Tensor]:
    """The tables of a model on the CPU, points of its ball in ``coordinates``; as they are if that is None."""
    tables = {name: values.detach().cpu() for name, values in model.parameters.items()}
    geometry = model.geometry
    if coordinates is None or (coordinates == "poincare" and isinstance(geometry, PoincareBall)):
        return tables
    if not isinstance(geometry, PoincareBall):
        raise ConfigError(
            f"this model lives in {geometry.name} space: it has no {coordinates} coordinates. Leave --coordinates out."
        )
    to = hyperboloid.from_ball if coordinates == "lorentz" else poincare.log0
    return {
        name: to(values.double(), c=geometry.c) if name in _points(model) else values for name, values in tables.items()
    }


def restored(model: Model, tables: dict[str, Tensor], coordinates: str) -> dict[str, Tensor]:
    """The inverse of :func:`converted`: tables as ``model``, which need have no values yet, holds them."""
    geometry = model.geometry
    if coordinates == own_coordinates(model) or not isinstance(geometry, PoincareBall):
        return tables
    back = hyperboloid.to_ball if coordinates == "lorentz" else poincare.exp0
    c = geometry.c
    return {
        # Rounding to the model's precision may put a point on the rim.
        name: poincare.project(back(values.double(), c=c).to(model.dtype), c=c) if name in _points(model) else values
        for name, values in tables.items()
    }


def _points(model: Model) -> set[str]:
    return {table.name for table in model.tables if table.geometry == model.geometry}
