"""The entities of an index packed for compiled loops: see :mod:`murp.prediction.numba_cells`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.evaluation import fused
from murp.geometry.ball_distance import query_coefficients
from murp.models import Model, MultiRelational
from murp.prediction.search import Floats

CENTRES = 512  # that are scored at a time


@dataclass(frozen=True, eq=False)
class PackedCells:
    """Panels (P, d, W), the numbers of their entities (3, P·W) or (2, P·W), and the first panel of each cell (C)."""

    panels: NDArray[Any]
    numbers: NDArray[Any]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, model: Model, tables: Mapping[str, Tensor], starts: NDArray[np.int64]) -> PackedCells:
        """Rows in the order of their cells, which begin at ``starts`` (C + 1)."""
        from murp.kernels.numba_products import packed

        width = 64 // model.dtype.itemsize
        rows = np.diff(starts)
        used = -(-rows // width)
        first = np.cumsum(used) - used
        panels = np.zeros((int(used.sum()), tables["entity"].shape[1], width), _dtype(model))
        own = fused.entity_numbers(cast(MultiRelational, model), tables["entity"], tables["object_bias"]).numpy()
        numbers = np.zeros((len(own), panels.shape[0] * width), panels.dtype)
        for cell, (start, count, panel) in enumerate(zip(starts[:-1], rows, first, strict=True)):
            panels[panel : panel + used[cell]] = packed(tables["entity"][start : start + count])
            numbers[:, panel * width : panel * width + count] = own[:, start : start + count]
        return cls(panels, numbers, first)

    @classmethod
    def of_centres(cls, model: Model, centres: Mapping[str, Tensor]) -> PackedCells:
        """Centres of cells, some hundred at a time."""
        count = len(centres["entity"])
        return cls.of(model, centres, np.append(np.arange(0, count, CENTRES), count))

    def scores(self, query: Asked, cells: NDArray[np.int64], rows: NDArray[np.int64]) -> Floats:
        """Of all entities of these cells, which have so many rows, one cell after the other; float64."""
        from murp.prediction.numba_cells import cell_scores

        found = cell_scores(*query, self.panels, self.numbers, self.first[cells], rows)
        return np.asarray(found, np.float64)


Asked = tuple[NDArray[Any], NDArray[Any], float]


def suits(model: Model) -> bool:
    """Whether there are loops for a model: for the published ones on the CPU."""
    return model.device.type == "cpu" and fused.kernel_for(model) is not None


def asked(model: MultiRelational, x: Tensor, r: Tensor) -> Asked:
    """What the loops need of a question: of x (1, d), the moved subject, and the translation r (1, d)."""
    space = model.geometry
    if space.is_flat:
        y = x - r
        return y.numpy(), y.square().sum(1).numpy(), 0.0
    c = space.c
    xx, rr, xr = (float(value.double().sum()) for value in (x * x, r * r, x * r))
    *bracket, scale = query_coefficients(xx, rr, xr, c)
    of_query = np.array(bracket) * scale
    return torch.cat([x, r]).numpy(), of_query.astype(_dtype(model)), 1 / c


def _dtype(model: Model) -> np.dtype[Any]:
    return np.dtype(str(model.dtype).removeprefix("torch."))
