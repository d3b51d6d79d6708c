"""Compiled loops of the lookup of texts: see :mod:`murp.graph.large.text_lookup`.

List l of the texts is ``order[starts[l]:starts[l + 1]]``. Hashing, counting and sorting are a pass each: the last two
wait for memory, and a processor waits for more of it at once where it has nothing else to do.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.compiling import announce, kernel
from murp.kernels.numba_numbering import hash_of, same

announce(__name__, "the look-up of names")


@kernel
def choose(data: Any, offsets: Any, present: Any, bits: int, chosen: Any) -> None:
    """The list of each text, -1 for a text that is not ``present``.

    Text i is ``data[offsets[i]:offsets[i + 1]]``.
    """
    for i in range(len(chosen)):
        chosen[i] = _list_of(data, offsets[i], offsets[i + 1], bits) if present[i] else -1


@kernel
def count(chosen: Any, starts: Any) -> None:
    """Where each list ends, into ``starts``, which is 0 before."""
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            starts[chosen[i]] += 1
    for i in range(1, len(starts)):
        starts[i] += starts[i - 1]


@kernel
def sort(chosen: Any, starts: Any, order: Any) -> None:
    """Put the texts into their lists, each in ascending order, from the last to the first."""
    for i in range(len(chosen) - 1, -1, -1):
        if chosen[i] >= 0:
            starts[chosen[i]] -= 1
            order[starts[chosen[i]]] = i


@kernel
def find(data: Any, offsets: Any, starts: Any, order: Any, bits: int, text: Any, found: Any) -> int:
    """The first texts that are equal to ``text``, as many as there is room for, into ``found``; how many these are."""
    many = 0
    one = _list_of(text, 0, len(text), bits)
    for at in range(starts[one], starts[one + 1]):
        if many == len(found):
            break
        i = order[at]
        if same(text, 0, len(text), data, offsets[i], offsets[i + 1]):
            found[many] = i
            many += 1
    return many


@kernel
def _list_of(data: Any, begin: int, end: int, bits: int) -> Any:
    """The first ``bits`` of the hash."""
    return np.int64(np.uint64(hash_of(data, begin, end)) >> np.uint64(64 - bits))
