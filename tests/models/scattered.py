"""Models of the registry with weights all over their spaces, for judges that score the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from murp.models import Model
from murp.testing import Subject


def scattered(name: str, settings: dict[str, Any], folder: Path) -> Model:
    """Far from the initial values, running means and variances too; in float64."""
    model = Subject(name, settings, folder).scattered()
    draw = torch.Generator().manual_seed(6)
    for table in model.tables:
        if not table.trained:
            values = model.parameters[table.name]
            values.add_(torch.rand(values.shape, dtype=values.dtype, generator=draw))
    return model
