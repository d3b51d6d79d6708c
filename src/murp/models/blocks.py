"""Tensors of one shape for PyTorch's operations on the CPU, so that equal rows get equal results.

PyTorch, and the library below it, round what stands at the end of a tensor, or of a thread's part of it, in another way
than what fills a vector. So rows are taken in blocks that are all as long, the last one filled up: a multiple of every
processor's vectors, and too few for PyTorch to share among threads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from murp import threads

QUERIES = 16
_LONGEST, _WHOLE = 1920, 64


def block_length(rows: int) -> int:
    """How long the blocks of so many rows are, all of them."""
    return min(_LONGEST, -(-rows // _WHOLE) * _WHOLE)


def filled(indices: Tensor, length: int) -> Tensor:
    """Indices (n) followed by the last of them up to ``length``."""
    return indices if len(indices) == length else torch.cat([indices, indices[-1:].expand(length - len(indices))])


def by_row(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """What ``function`` makes of rows (n, d) → (n), each row's result a function of that row alone."""
    if rows.device.type != "cpu":
        return function(rows)
    found, length = rows.new_empty(len(rows)), block_length(len(rows))
    with threads.torch_alone():
        for start in range(0, len(rows), length):
            block = rows[start : start + length]
            whole = block if len(block) == length else block[filled(torch.arange(len(block)), length)]
            found[start : start + length] = function(whole)[: len(block)]
    return found
