"""Tables of points in the coordinates asked for, and back."""

from __future__ import annotations

from typing import Literal, cast

from torch import Tensor

from murp.errors import ConfigError
from murp.geometry import MobiusGeometry, hyperboloid, poincare
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


def has_all_coordinates(model: Model) -> bool:
    """Whether its points can be written in all :data:`COORDINATES`: those of the ball can."""
    return own_coordinates(model) == "poincare"


def converted(model: Model, coordinates: Coordinates | None) -> dict[str, Tensor]:
    """The tables of a model on the CPU, points of its ball in ``coordinates``; as they are if that is None."""
    tables = {name: values.detach().cpu() for name, values in model.parameters.items()}
    if coordinates in (None, own_coordinates(model)):
        return tables
    if not has_all_coordinates(model):
        raise ConfigError(
            f"this model lives in {model.geometry.name} space: it has no {coordinates} coordinates. Leave "
            "--coordinates out."
        )
    to, c = hyperboloid.from_ball if coordinates == "lorentz" else poincare.log0, _c(model)
    return {name: to(values.double(), c=c) if name in _points(model) else values for name, values in tables.items()}


def restored(model: Model, tables: dict[str, Tensor], coordinates: str) -> dict[str, Tensor]:
    """The inverse of :func:`converted`: tables as ``model``, which need have no values yet, holds them."""
    if coordinates == own_coordinates(model) or not has_all_coordinates(model):
        return tables
    back, c = hyperboloid.to_ball if coordinates == "lorentz" else poincare.exp0, _c(model)
    return {
        # Rounding to the model's precision may put a point on the rim.
        name: poincare.project(back(values.double(), c=c).to(model.dtype), c=c) if name in _points(model) else values
        for name, values in tables.items()
    }


def _c(model: Model) -> float:
    """The c of a model's ball."""
    return cast(MobiusGeometry, model.geometry).c


def _points(model: Model) -> set[str]:
    return {table.name for table in model.tables if table.geometry == model.geometry}
