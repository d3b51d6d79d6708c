"""Which rows of a matrix are equal to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp.compiling import announce, kernel

announce(__name__, "the scores of all entities")

_WORDS = {torch.float32: np.uint32, torch.float64: np.uint64}


def distinct_rows(x: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
    """The first of each kind of rows, in their order (U), and which of these every row is (B).

    x (B, d) is contiguous. Rows are equal if all bits of x[b] and of own[b] (B) are.
    """
    count = len(x)
    word = _WORDS[x.dtype]
    numbers = x.new_zeros(count) if own is None else own
    slots = np.full(1 << (2 * count).bit_length(), -1, np.int32)  # at least half of them stay free
    first, place = np.empty(count, np.int64), np.empty(count, np.int64)
    number = _number(x.numpy().view(word), numbers.contiguous().numpy().view(word), slots, first, place)
    return torch.from_numpy(first[:number]), torch.from_numpy(place)


@kernel
def _number(rows: Any, own: Any, slots: Any, first: Any, place: Any) -> int:
    """Fill ``first`` and ``place``; returns how many rows are distinct. A free slot holds -1, others a distinct row."""
    number = 0
    for b in range(len(rows)):
        at = _hash(rows, own, b) & np.uint64(len(slots) - 1)
        while slots[at] >= 0 and not _same(rows, own, first[slots[at]], b):
            at = (at + np.uint64(1)) & np.uint64(len(slots) - 1)
        if slots[at] < 0:
            slots[at] = number
            first[number] = b
            number += 1
        place[b] = slots[at]
    return number


@kernel
def _hash(rows: Any, own: Any, b: int) -> Any:
    code = np.uint64(own[b])
    for j in range(rows.shape[1]):  # an odd factor, as in FNV; the upper bits, which depend on all words, are added
        code = (code ^ np.uint64(rows[b, j])) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(32)
    return code


@kernel
def _same(rows: Any, own: Any, a: int, b: int) -> Any:
    j = 0
    while j < rows.shape[1] and rows[a, j] == rows[b, j]:
        j += 1
    return j == rows.shape[1] and own[a] == own[b]
