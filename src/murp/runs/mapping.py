"""Tables mapped into memory from one file or from several: nothing is read before it is used.

The rows of a table must lie one after another in memory, and a mapping is of whole pages. So where a table's rows are
in several files, room for all of them is reserved, and the pages of each file are mapped into it. That needs rows that
begin at the same place of a page in the file and in the table: :func:`padded` sees to it when the files are written.
Rows that lie otherwise are read, and so are the first and last bytes of each file's rows, which do not fill a page.

No memory is reserved for what may be written to: a table may be larger than the machine's memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from io import BufferedReader
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

PADDING = "padding."  # before the name of a table: zeros that stand before it in a file
PAGE = 2**16  # bytes: a multiple of every system's page
WORTH = 2**20  # bytes of a table
# Python names neither, or only from version 3.13 on.
FIXED, NO_RESERVE = 0x10, 0x4000 if sys.platform == "linux" else 0


class Piece(NamedTuple):
    """Some rows of a table: ``size`` bytes of an open file from ``begin`` on."""

    file: BufferedReader
    begin: int
    size: int


def worth(tables: Iterable[Tensor]) -> bool:
    """Whether one of the tables is so large that mapping it is worth some zeros in its file."""
    return any(values.nbytes >= WORTH for values in tables)


def padded(tables: Mapping[str, Tensor], starts: Mapping[str, int]) -> dict[str, Tensor]:
    """The tables of a file, which begin with a page, with zeros between them, so that all large ones can be mapped.

    ``starts``: the bytes of a whole table that stand in files before this one. Tables of small numbers come last, as in
    :func:`murp.runs.tensor_file.write`.
    """
    found, end = {}, 0
    for name, values in sorted(tables.items(), key=lambda one: -one[1].itemsize):
        gap = (starts.get(name, 0) - end) % PAGE if worth([values]) else 0
        if gap:
            found[PADDING + name] = values.new_zeros(gap // values.itemsize)
        found[name] = values
        end += gap + values.nbytes
    return found


def mapped(shape: Iterable[int], dtype: torch.dtype, pieces: list[Piece]) -> Tensor:
    """A table whose bytes are ``pieces``, one after another. What is written to it is the process's own."""
    size = sum(piece.size for piece in pieces)
    if not size:
        return torch.empty(*shape, dtype=dtype)
    lead = pieces[0].begin % mmap.PAGESIZE
    room = mmap.mmap(-1, lead + size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE)
    values = np.frombuffer(room, np.uint8, size, lead)
    end = 0
    for piece in pieces:
        begin, end = end, end + piece.size
        _fill(values[begin:end], piece)
    return torch.from_numpy(values).view(dtype).view(*shape)


def _fill(values: np.ndarray[Any, np.dtype[np.uint8]], piece: Piece) -> None:
    """Map the whole pages of a piece to their place in memory, and read the rest of it."""
    place, page = values.ctypes.data, mmap.PAGESIZE
    first, last = -place % page, (place + piece.size) // page * page - place
    if (place - piece.begin) % page or first >= last:
        first = last = piece.size
    for begin, end in ((0, first), (last, piece.size)):
        piece.file.seek(piece.begin + begin)
        if piece.file.readinto(values[begin:end].data) != end - begin:
            raise ValueError("it ends within a table")
    if first < last:
        flags = mmap.MAP_PRIVATE | FIXED | NO_RESERVE
        given = (mmap.PROT_READ | mmap.PROT_WRITE, flags, piece.file.fileno(), piece.begin + first)
        if _mmap()(place + first, last - first, *given) != place + first:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@cache
def _mmap() -> Any:
    """The system's mmap, which Python offers without the place in memory."""
    found = ctypes.CDLL(None, use_errno=True).mmap
    found.restype = ctypes.c_void_p
    found.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    return found
