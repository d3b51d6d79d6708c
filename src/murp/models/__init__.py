"""Models: MuRP and MuRE, the paper's two, and the parts they are made of."""

from __future__ import annotations

from collections.abc import Callable

import torch

from murp.config import Config
from murp.geometry import Euclidean, PoincareBall
from murp.models.biases import BIASES, Bias
from murp.models.model import Model, Role, Rows, Table
from murp.models.multirelational import MultiRelational
from murp.models.transformations import TRANSFORMATIONS, Transformation

__all__ = [
    "BIASES",
    "MODELS",
    "TRANSFORMATIONS",
    "Bias",
    "Model",
    "MultiRelational",
    "Role",
    "Rows",
    "Table",
    "Transformation",
    "from_config",
    "mure",
    "murp",
]


def murp(
    num_entities: int,
    num_relations: int,
    dim: int,
    *,
    curvature: float = 1.0,
    transformation: str = "published",
    bias: Bias = "both",
    dtype: torch.dtype = torch.float32,
) -> MultiRelational:
    """MuRP: φ = -d_B(exp₀(R log₀(h_s)), h_o ⊕ r_h)² + b_s + b_o on the Poincaré ball (equation 5)."""
    ball = PoincareBall(curvature)
    parts = TRANSFORMATIONS[transformation]
    return MultiRelational(
        num_entities, num_relations, dim, geometry=ball, transformation=parts, bias=bias, dtype=dtype
    )


def mure(
    num_entities: int,
    num_relations: int,
    dim: int,
    *,
    transformation: str = "published",
    bias: Bias = "both",
    dtype: torch.dtype = torch.float32,
) -> MultiRelational:
    """MuRE: φ = -|R e_s - (e_o + r)|² + b_s + b_o in Euclidean space (equation 4)."""
    parts = TRANSFORMATIONS[transformation]
    return MultiRelational(
        num_entities, num_relations, dim, geometry=Euclidean(), transformation=parts, bias=bias, dtype=dtype
    )


MODELS: dict[str, Callable[..., MultiRelational]] = {"murp": murp, "mure": mure}


def from_config(config: Config, num_entities: int, num_relations: int) -> MultiRelational:
    """The model a configuration describes, for R relations of a graph and their reciprocals; no values yet."""
    parts: dict[str, object] = {"transformation": config.transformation, "bias": config.bias}
    if config.model == "murp":
        parts["curvature"] = config.curvature
    dtype = {"float32": torch.float32, "float64": torch.float64}[config.dtype]
    return MODELS[config.model](num_entities, 2 * num_relations, config.dim, dtype=dtype, **parts)
