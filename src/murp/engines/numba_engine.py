"""The Numba engine: MuRP and MuRE on the CPU, fused and compiled; see :mod:`murp.engines.numba_kernels`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import torch
from torch import Tensor

from murp.engines import numba_kernels as kernels
from murp.engines.engine import Chunk
from murp.geometry import PoincareBall
from murp.geometry.poincare import limit_radius, set_back_radius
from murp.models import MultiRelational


class NumbaEngine:
    """Steps of the published MuRP or MuRE; the same bits whatever the number of threads."""

    name = "numba"

    def __init__(self, model: MultiRelational) -> None:
        self.model = model
        self.workspaces: dict[tuple[int, int], dict[str, Any]] = {}

    def run(self, chunks: Sequence[Chunk], rates: Sequence[float]) -> Tensor:
        """See :meth:`murp.engines.engine.Engine.run`; this engine has one model."""
        (chunk,), (lr,) = chunks, rates
        return self.steps(chunk.positives, chunk.draw(), lr)[None]

    def steps(self, positives: Tensor, negatives: Tensor, lr: float) -> Tensor:
        """One step after another on positives (S, B, 3) and negatives (S, B, k); the sum of their mean losses."""
        model = self.model
        shape = (positives.shape[1], negatives.shape[2])
        tables = {name: values.numpy() for name, values in model.parameters.items()}
        names = ("entity", "subject_stretch", "translation", "subject_bias", "object_bias")
        arrays = (positives.numpy(), negatives.numpy(), *(tables[name] for name in names))
        if shape not in self.workspaces:
            self.workspaces[shape] = kernels.workspace(
                tables["entity"].dtype,
                model.num_entities,
                model.num_relations,
                model.dim,
                *shape,
                numba.config.NUMBA_NUM_THREADS,
            )
        space = self.workspaces[shape]
        if isinstance(model.geometry, PoincareBall):
            bounds = (limit_radius(model.dtype), set_back_radius(model.dtype))
            total = kernels.murp_steps(*arrays, lr, model.geometry.c, *bounds, *space.values())
        else:
            used = ("moved", "of_phi", "s_gradient", "m_gradient", "r_gradient", "s_bias_gradient", "losses", "head",
                    "following", "rows", "relation_head", "relation_rows", "scratch")  # fmt: skip
            total = kernels.mure_steps(*arrays, lr, *(space[name] for name in used))
        return torch.tensor(total, dtype=torch.float64)
