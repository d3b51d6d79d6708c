"""Batches to step on, and what a step costs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


def random_batch(entities: int, relations: int, size: int, negatives: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    columns = [torch.randint(high, (size,), generator=draw) for high in (entities, relations, entities)]
    return torch.stack(columns, dim=1), torch.randint(entities, (size, negatives), generator=draw)


class ElementCount(TorchDispatchMode):
    """Adds up the elements of every tensor that operations make."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        # A function that writes into its argument returns that argument, and a view shows it: nothing new was made.
        given = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
        if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in given:
            self.elements += result.numel()
        return result
