"""Models: one file each. :mod:`murp.registry` has their names.

model.py is the interface, shared/ has formulas and base classes that several models use. blocks.py, host_memory.py and
rounding.py are about how tables of any model are stored and computed with.
"""

from __future__ import annotations

import torch

from murp import registry
from murp.config import Config
from murp.models.model import Candidate, Model, Query, Role, Rows, Table
from murp.models.multirelational import MultiRelational, MuRE, MuRP
from murp.models.shared.biases import BIASES, Bias
from murp.models.shared.dot_product import DotProduct
from murp.models.shared.transformations import TRANSFORMATIONS, Transformation

__all__ = [
    "BIASES",
    "MODELS",
    "TRANSFORMATIONS",
    "Bias",
    "Candidate",
    "DotProduct",
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
    "point_dtype",
]

murp, mure = MuRP, MuRE
DTYPES = {str(one).removeprefix("torch."): one for one in (torch.float32, torch.float64, torch.float16, torch.bfloat16)}
MODELS: dict[str, type[MultiRelational]] = {"murp": MuRP, "mure": MuRE}


def from_config(config: Config, num_entities: int, num_relations: int) -> Model:
    """The model of a configuration, for R relations of a graph and their reciprocals; without values yet."""
    build = registry.find("model", config.model)
    model: Model = build(num_entities, 2 * num_relations, dtype=DTYPES[config.dtype], **config.settings_of("model"))
    model.point_dtype = point_dtype(config)
    return model


def point_dtype(config: Config) -> torch.dtype:
    """The precision in which a run stores its entities' points."""
    return DTYPES[config.dtype if config.table_dtype == "auto" else config.table_dtype]
