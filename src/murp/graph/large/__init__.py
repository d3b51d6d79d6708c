"""Reading past memory: facts are numbered piece by piece and kept on disk, names alone in memory.

plan.py        which files are to be read, and how
pieces.py      files in pieces, each a table of strings: rows of text, row groups of Parquet; numba_rows.py: a compiled
               loop that finds the end of a quoted row
numbering.py   names to numbers in a table that grows; numba_numbering.py: its compiled loops
splitting.py   train, valid and test out of one set of facts on disk; numba_splitting.py: its compiled loops
work.py        the folder of work in progress, so that what was interrupted goes on
coding.py      all of it: from files to a graph in coded form, mapped into memory when it is read
text_lookup.py names back to numbers, for a graph that is served; numba_text_lookup.py: its compiled loops

The result is that of the ordinary readers to the last number: the same names, in the same order, the same splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from murp.graph.reading.streams import split_endings

LARGE = 1 << 29  # bytes of text from which on files are read this way
PARQUET = 4  # bytes of text that one of Parquet stands for, about
FORMATS = (".txt", ".tsv", ".csv", ".parquet")


def suits(files: Sequence[Path]) -> bool:
    """Whether files are of formats that are read in pieces."""
    return all(split_endings(file)[0] in FORMATS for file in files)


def is_large(files: Sequence[Path]) -> bool:
    """Whether files are read in pieces without being asked: by what they hold, and how much of it."""
    try:
        return suits(files) and sum(map(_bytes_of_text, files)) >= LARGE
    except OSError:
        return False  # whoever reads them will say what is wrong


def _bytes_of_text(file: Path) -> int:
    return file.stat().st_size * (PARQUET if split_endings(file)[0] == ".parquet" else 1)
