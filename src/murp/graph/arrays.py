"""Arrays written to files so that a full disk is an OSError.

``ndarray.tofile``, which ``numpy.save`` calls too, has a buffer of its own and does not look whether it could be
written: a few rows are lost without an error, and the error of many has no reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from murp.files import flush


def write(file: BinaryIO, array: NDArray[Any]) -> None:
    """Add the numbers of ``array`` to a file with a buffer, which writes all or raises, now or when it is closed."""
    file.write(np.ascontiguousarray(array).data)


def save(path: Path, array: NDArray[Any]) -> None:
    """The file that ``numpy.save`` makes, flushed to disk."""
    array = np.ascontiguousarray(array)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        write(file, array)
        file.flush()
        flush(file.fileno())
