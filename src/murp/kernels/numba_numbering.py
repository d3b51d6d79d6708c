"""Compiled loops of the table of names: see :mod:`murp.graph.large.numbering`."""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.compiling import announce, kernel

announce(__name__, "the reader of large graphs")

_LOW = np.int64(0xFFFFFFFF)


@kernel
def number(
    data: Any, offsets: Any, slots: Any, names: Any, ends: Any, count: int, first: Any, stage: int, row: int, out: Any
) -> int:
    """Numbers of texts into ``out``; how many names there are then.

    Text i is ``data[offsets[i]:offsets[i + 1]]``. A slot holds the upper half of a hash and 1 + number, 0 where it is
    free; there is room for all that may be new. Name n is ``names[ends[n]:ends[n + 1]]``. ``first`` keeps where a name
    came first: in the column with the lowest ``stage``, there in the lowest row.
    """
    mask = np.int64(len(slots) - 1)
    for i in range(len(out)):
        begin, end = offsets[i], offsets[i + 1]
        place_key = (np.int64(stage) << np.int64(56)) | np.int64(row + i)
        code = hash_of(data, begin, end)
        tag = (code >> np.int64(32)) & _LOW
        at = code & mask
        found = np.int64(-1)
        while slots[at] != 0:
            if (slots[at] >> np.int64(32)) & _LOW == tag:
                candidate = (slots[at] & _LOW) - 1
                if same(data, begin, end, names, ends[candidate], ends[candidate + 1]):
                    found = candidate
                    break
            at = (at + 1) & mask
        if found < 0:
            found = np.int64(count)
            count += 1
            slots[at] = (tag << np.int64(32)) | (found + 1)
            start = ends[found]
            for j in range(end - begin):
                names[start + j] = data[begin + j]
            ends[found + 1] = start + (end - begin)
            first[found] = place_key
        elif place_key < first[found]:
            first[found] = place_key
        out[i] = found
    return count


@kernel
def fill(slots: Any, names: Any, ends: Any, count: int) -> None:
    """Put the names 0 … count - 1 into empty slots."""
    mask = np.int64(len(slots) - 1)
    for n in range(count):
        code = hash_of(names, ends[n], ends[n + 1])
        at = code & mask
        while slots[at] != 0:
            at = (at + 1) & mask
        slots[at] = (((code >> np.int64(32)) & _LOW) << np.int64(32)) | np.int64(n + 1)


@kernel
def renumber(rows: Any, entities: Any, relations: Any, heads: Any) -> None:
    """Rows (n, 3) of old numbers to new ones, where they lie; ``heads`` counts how often each is a head."""
    for i in range(len(rows)):
        head = entities[rows[i, 0]]
        rows[i, 0], rows[i, 1], rows[i, 2] = head, relations[rows[i, 1]], entities[rows[i, 2]]
        heads[head] += 1


@kernel
def same(data: Any, begin: int, end: int, names: Any, start: int, stop: int) -> bool:
    """Whether ``data[begin:end]`` and ``names[start:stop]`` are the same bytes."""
    if end - begin != stop - start:
        return False
    different = 0
    for j in range(end - begin):
        different += data[begin + j] != names[start + j]
    return different == 0


@kernel
def hash_of(data: Any, begin: int, end: int) -> Any:
    """64 bits of all bytes, eight at a time, with the multipliers of splitmix64."""
    code = np.uint64(end - begin) * np.uint64(0x9E3779B97F4A7C15)
    place = begin
    while place < end:
        word = np.uint64(0)
        for j in range(min(8, end - place)):
            word |= np.uint64(data[place + j]) << np.uint64(8 * j)
        code = (code ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(29)
        place += 8
    code *= np.uint64(0x94D049BB133111EB)
    code ^= code >> np.uint64(32)
    return np.int64(code)
