"""Candidates of protocol ``sampled`` in a Parquet file, for another library or for a later evaluation.

A row is a question: ``head``, ``relation`` and ``tail`` of its fact by id, ``asked`` ("head" or "tail"), and its
``candidates``, a list of ids. The file also says their number, the seed and the digest. It is written and read
(:mod:`murp.evaluation.stored_candidates`) a block at a time, so memory does not grow with the number of questions.

A file from elsewhere needs only these columns, in any order of rows. Every question of the split must be there once,
with as many candidates as the others, or all that are left; the answer and other known answers are no candidates.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from murp.errors import MurpError, why_not
from murp.evaluation.candidates import Drawn, Questions
from murp.evaluation.ranks import Sample
from murp.files import replacing
from murp.graph import Indices, Vocabulary

TEXT = pa.large_string()
COLUMNS = ("head", "relation", "tail", "asked", "candidates")
SCHEMA = pa.schema([*((name, TEXT) for name in COLUMNS[:4]), ("candidates", pa.large_list(TEXT))])
SAMPLE = b"murp.sample"  # in the file's metadata: number of candidates, seed and digest
SIDES = ("tail", "head")
CELLS = 2**19  # candidates that are texts at a time


def check_new(path: Path) -> None:
    """Raise, before any work is done, if the file could not be written."""
    if path.suffix.lower() != ".parquet":
        raise MurpError(f"{path}: candidates are stored as Parquet. Give a name that ends in .parquet.")
    if path.exists():
        raise MurpError(f"{path} exists already. Choose another name for the candidates, or remove it first.")
    if not path.parent.is_dir():
        raise MurpError(f"{path}: there is no folder {path.parent}. Make it first.")


@contextlib.contextmanager
def writing(path: Path, questions: Questions) -> Iterator[Writer]:
    """Yield what takes the candidates; ``path`` appears when the block ends, and not at all if it raises."""
    check_new(path)
    try:
        with replacing(path) as part, pq.ParquetWriter(part, SCHEMA, compression="zstd") as file:
            yield Writer(file, questions)
    except OSError as error:
        raise MurpError(f"{path} cannot be written: {why_not(error)}. Nothing was kept.") from error


class Writer:
    """Writes questions with their candidates; a fact that the split has twice is written once."""

    def __init__(self, file: pq.ParquetWriter, questions: Questions) -> None:
        self.file, self.questions = file, questions
        self.first = np.zeros(len(questions), bool)
        self.first[np.unique(questions.keys, return_index=True)[1]] = True

    def add(self, which: Indices, drawn: Drawn) -> None:
        kept = self.first[which]
        which, drawn = which[kept], drawn[kept]
        size = max(1, CELLS // max(1, drawn.shape[1]))
        for start in range(0, len(which), size):
            self.file.write_table(self._table(which[start : start + size], drawn[start : start + size]))

    def sign(self, sample: Sample) -> None:
        """Say in the file how its candidates were drawn."""
        told = {"candidates": sample.candidates, "seed": sample.seed, "digest": sample.digest}
        self.file.add_key_value_metadata({SAMPLE: json.dumps(told).encode()})

    def _table(self, which: Indices, drawn: Drawn) -> pa.Table:
        asked, graph = self.questions, self.questions.graph
        subjects, relations, targets = (of[which] for of in (asked.subjects, asked.relations, asked.targets))
        heads, there = relations >= graph.num_relations, drawn >= 0
        starts = np.append(0, np.cumsum(there.sum(axis=1)))
        columns = (
            _ids(graph.entities, np.where(heads, targets, subjects)),
            _ids(graph.relations, relations % graph.num_relations),
            _ids(graph.entities, np.where(heads, subjects, targets)),
            pa.array(SIDES, TEXT).take(pa.array(heads.astype(np.int8))),
            pa.LargeListArray.from_arrays(pa.array(starts), _ids(graph.entities, drawn[there])),
        )
        return pa.table(columns, schema=SCHEMA)


def _ids(vocabulary: Vocabulary, numbers: NDArray[np.integer]) -> pa.Array:
    return vocabulary.ids.take(pa.array(numbers))
