"""Models: one file each, and what they are made of. :mod:`murp.registry` has their names."""

from __future__ import annotations

import torch

from murp import registry
from murp.config import Config
from murp.models.biases import BIASES, Bias
from murp.models.model import Candidate, Model, Query, Role, Rows, Table
from murp.models.multirelational import MultiRelational, MuRE, MuRP
from murp.models.transformations import TRANSFORMATIONS, Transformation

__all__ = [
    "BIASES",
    "MODELS",
    "TRANSFORMATIONS",
    "Bias",
    "Candidate",
    "Model",
    "MuRE",
    "MuRP",
    "MultiRelational",
    "Query",
    "Role",
    "Rows",
    "Table",
    "Transformation",
    "from_config",
    "mure",
    "murp",
]

murp, mure = MuRP, MuRE
MODELS: dict[str, type[MultiRelational]] = {"murp": MuRP, "mure": MuRE}


def from_config(config: Config, num_entities: int, num_relations: int) -> Model:
    """The model of a configuration, for R relations of a graph and their reciprocals; without values yet."""
    build = registry.find("model", config.model)
    dtype = {"float32": torch.float32, "float64": torch.float64}[config.dtype]
    model: Model = build(num_entities, 2 * num_relations, dtype=dtype, **config.settings_of("model"))
    return model
