"""Tensors of one shape for PyTorch's operations on the CPU, so that equal rows get equal results.

PyTorch and its libraries round the end of a tensor, or of a thread's part of it, differently from parts that fill a
whole vector. So rows are processed in blocks of equal length, the last one padded: a multiple of every processor's
vector length, and too few rows for PyTorch to divide among threads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from murp import threads

QUERIES = 16
_LONGEST, _WHOLE = 1920, 64


def block_length(rows: int) -> int:
    """The length of the blocks for so many rows."""
    return min(_LONGEST, -(-rows // _WHOLE) * _WHOLE)


def filled(indices: Tensor, length: int) -> Tensor:
    """Indices (n) followed by the last of them up to ``length``."""
    return indices if len(indices) == length else torch.cat([indices, indices[-1:].expand(length - len(indices))])


def by_row(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """Apply ``function`` to rows (n, d) → (n), so that each row's result depends only on that row."""
    if rows.device.type != "cpu":
        return function(rows)
    found, length = rows.new_empty(len(rows)), block_length(len(rows))
    with threads.torch_alone():
        for start in range(0, len(rows), length):
            block = rows[start : start + length]
            whole = block if len(block) == length else block[filled(torch.arange(len(block)), length)]
            found[start : start + length] = function(whole)[: len(block)]
    return found
