"""Names to numbers in a table that grows: what is in memory is the names, 24 to 48 bytes beside each of them.

Names are numbered as they come. Where each came first is kept, so that in the end they can be put into the order of the
ordinary reader: by their first appearance in train's heads, train's tails, valid's heads, and so on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from murp.errors import DataError
from murp.graph import arrays
from murp.graph.names.vocabulary import PLURALS, text_buffers
from murp.kernels import numba_numbering as loops

MOST = 2**31 - 1  # numbers of entities have 32 bits everywhere in murp


class Names:
    """The distinct names of one ``kind`` of thing."""

    def __init__(self, kind: str) -> None:
        self.kind, self.count = kind, 0
        self._slots = np.zeros(1 << 12, np.int64)
        self._names, self._ends = np.zeros(1 << 16, np.uint8), np.zeros((1 << 11) + 1, np.int64)
        self._first = np.zeros(1 << 11, np.int64)

    def number(self, texts: pa.Array, stage: int, row: int) -> NDArray[np.int32]:
        """The numbers (n) of texts (n), large strings; ``stage`` and ``row`` say where the first of them stands."""
        if len(texts) == 0:
            return np.empty(0, np.int32)
        offsets, data = text_buffers(texts)
        self._make_room(len(texts), int(offsets[-1] - offsets[0]))
        out = np.empty(len(texts), np.int32)
        table = self._slots, self._names, self._ends
        self.count = loops.number(data, offsets, *table, self.count, self._first, stage, row, out)
        return out

    def in_order(self) -> tuple[pa.Array, NDArray[np.int32]]:
        """The names by where they came first, and the place of each number there."""
        order = np.argsort(self._first[: self.count], kind="stable")
        places = np.empty(self.count, np.int32)
        places[order] = np.arange(self.count, dtype=np.int32)
        return self._texts().take(pa.array(order)), places

    def save(self, folder: Path) -> None:
        """Write names and where they came first into ``folder``, flushed to disk."""
        arrays.save(folder / f"{self.kind}.names.npy", self._names[: self._ends[self.count]])
        arrays.save(folder / f"{self.kind}.ends.npy", self._ends[: self.count + 1])
        arrays.save(folder / f"{self.kind}.first.npy", self._first[: self.count])

    @classmethod
    def load(cls, kind: str, folder: Path) -> Names:
        """What :meth:`save` wrote; an OSError or ValueError if that is damaged."""
        made = cls(kind)
        try:
            names, ends, first = (
                np.load(folder / f"{kind}.{part}.npy", allow_pickle=False) for part in ("names", "ends", "first")
            )
        except EOFError as error:
            raise ValueError(str(error)) from error
        if len(ends) != len(first) + 1 or ends[-1] != len(names):
            raise ValueError("its files do not belong together")
        made._names, made._ends, made._first, made.count = names, ends, first, len(first)
        made._slots = np.zeros(0, np.int64)
        made._make_room(1, 0)
        return made

    def _make_room(self, more: int, size: int) -> None:
        """For so many more names of so many bytes."""
        most = self.count + more
        if most > MOST:
            raise DataError(
                f"more than {MOST:,} {PLURALS[self.kind]} (or nearly): their numbers have 32 bits. Leave some out."
            )
        self._names = _longer(self._names, int(self._ends[self.count]) + size)
        self._ends, self._first = _longer(self._ends, most + 1), _longer(self._first, most)
        if len(self._slots) < 2 * most:
            self._slots = np.zeros(1 << max(12, (2 * most - 1).bit_length()), np.int64)
            loops.fill(self._slots, self._names, self._ends, self.count)

    def _texts(self) -> pa.Array:
        ends, names = self._ends[: self.count + 1], self._names[: self._ends[self.count]]
        return pa.LargeStringArray.from_buffers(self.count, pa.py_buffer(ends), pa.py_buffer(names))


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """``array``, or one of half as much again that begins with it, where it is shorter than ``length``."""
    if len(array) >= length:
        return array
    longer = np.zeros(max(length, len(array) + len(array) // 2), array.dtype)
    longer[: len(array)] = array
    return longer
