"""Gradients of slices by the kernels of the Triton engine; see :mod:`murp.engines.triton_engine`."""

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from murp.engines.triton_engine import RELATION_TABLES, TABLES, options, space
from murp.engines.triton_gradient import gradient_kernel
from murp.engines.triton_update import update_kernel
from murp.models import Model, MultiRelational
from murp.models.model import Rows


class TritonSlices:
    """See :class:`murp.engines.slices.SliceGradients`. The order of additions varies, as in the engine."""

    name = "triton"

    def __init__(self) -> None:
        self.buffers: dict[tuple[int, int], Buffers] = {}

    def __call__(self, model: Model, positives: Tensor, negatives: Tensor, weight: float) -> tuple[Tensor, Rows]:
        """See :class:`murp.engines.slices.SliceGradients`."""
        assert isinstance(model, MultiRelational)
        shape = (negatives.shape[0], negatives.shape[1])
        if shape not in self.buffers:
            self.buffers[shape] = Buffers(model, *shape)
        return self.buffers[shape].gradients(model, positives, negatives, weight)


class Buffers:
    """What the kernels need for slices of one size and number of negatives."""

    def __init__(self, model: MultiRelational, size: int, negatives: int) -> None:
        self.size, candidates = size, 1 + negatives
        occurrences = size * (candidates + 1)
        head = torch.full((occurrences,), -1, dtype=torch.int32, device=model.device)  # a slice has no more rows
        self.space = [*space(model, size, candidates), head]
        self.clock = torch.zeros(2, dtype=torch.int64, device=model.device)
        self.nothing = torch.zeros(0, dtype=model.dtype, device=model.device)
        self.gradient_options, self.update_options = options(model, candidates, slices=True)
        # Without programs for relations: the gradient kernel has summed theirs.
        self.update_programs = triton.cdiv(occurrences, self.update_options["OT"])

    def gradients(
        self, model: MultiRelational, positives: Tensor, negatives: Tensor, weight: float
    ) -> tuple[Tensor, Rows]:
        """The entities' rows are overwritten."""
        tables = [model.parameters.get(name, self.nothing) for name in TABLES]
        named = [name for name in RELATION_TABLES if name in model.parameters]
        relations = {name: torch.zeros_like(model.parameters[name]) for name in named}
        sums = [relations.get(name, self.nothing) for name in RELATION_TABLES]
        loss = torch.zeros(1, dtype=torch.float64, device=model.device)
        weights = torch.full((1,), weight, dtype=model.dtype, device=model.device)
        first: tuple[Any, ...] = (positives.contiguous(), self.clock, 0, 1)
        sizes = model.num_entities, model.num_relations, self.size, 1
        gradient_kernel[(self.size, 1)](
            *first, self.clock, negatives.contiguous(), *tables, *self.space, *sums, loss, *sizes,
            **self.gradient_options,
        )  # fmt: skip
        update_kernel[(self.update_programs, 1)](
            *first, weights, *tables, *self.space, *sums, self.clock, *sizes, **self.update_options
        )
        found = model.parameters | {name: weight * values for name, values in relations.items()}
        return (weight * loss[0]).to(model.dtype), found
