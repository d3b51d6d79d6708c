"""From rows of names to queries and triples of numbers, a block at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError, UnknownNameError
from murp.graph import Indices, KnowledgeGraph, Vocabulary
from murp.prediction.rows import Row, place, read_rows

BLOCK = 2**15
"""How many rows are held at once."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Q questions: subjects (Q) and relations (Q), those from R on asking for heads through the reciprocal."""

    subjects: Indices
    relations: Indices

    def __len__(self) -> int:
        return len(self.subjects)


class Numbers:
    """The numbers of many things of a vocabulary by id or, where only one has it, by name."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.names, self.named = pa.array([], pa.large_string()), np.zeros(0, np.int64)
        if vocabulary.names is not None:
            counts = vocabulary.names.drop_null().value_counts()
            once = pc.filter(counts.field("values"), pc.equal(counts.field("counts"), 1))
            self.names, self.named = once, pc.index_in(once, value_set=vocabulary.names).to_numpy(False)

    def find(self, texts: Sequence[str], path: Path, lines: Sequence[int]) -> Indices:
        """The numbers of ``texts``; the first that is unknown or ambiguous is an error that names file and line."""
        column = pa.array(texts, pa.large_string())
        by_id = pc.index_in(column, value_set=self.vocabulary.ids)
        found: Indices = pc.fill_null(by_id, -1).to_numpy(False).astype(np.int64)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            by_name = pc.index_in(column.take(pa.array(missing)), value_set=self.names)
            rows = pc.fill_null(by_name, -1).to_numpy(False)
            found[missing[rows >= 0]] = self.named[rows[rows >= 0]]
        for row in missing.tolist():
            if found[row] < 0:
                try:
                    self.vocabulary.find(texts[row])
                except UnknownNameError as error:
                    raise UnknownNameError(f"{place(path, lines[row])}: {error}") from None
        return found


def read_queries(path: Path, graph: KnowledgeGraph, block: int = BLOCK) -> Iterator[Queries]:
    """The questions of a file, ``block`` at a time: (head, relation) or (relation, tail), one place open."""
    entities, relations = Numbers(graph.entities), Numbers(graph.relations)
    for lines, rows in _blocks(path, block):
        for line, (head, _, tail) in zip(lines, rows, strict=True):
            if (head is None) == (tail is None):
                stated = "neither" if head is None else "both"
                raise DataError(
                    f"{place(path, line)}: a question gives a head or a tail, and this row has {stated}."
                    " Leave the place that is asked for empty, or put ? there."
                )
        given = [head or tail or "" for head, _, tail in rows]
        asked = relations.find([relation for _, relation, _ in rows], path, lines)
        asked += graph.num_relations * np.array([head is None for head, _, _ in rows])
        yield Queries(entities.find(given, path, lines), asked)


def read_triples(path: Path, graph: KnowledgeGraph, block: int = BLOCK) -> Iterator[Indices]:
    """The triples of a file in numbers, (n, 3) with n up to ``block``."""
    entities, relations = Numbers(graph.entities), Numbers(graph.relations)
    for lines, rows in _blocks(path, block):
        for line, (head, _, tail) in zip(lines, rows, strict=True):
            if head is None or tail is None:
                raise DataError(
                    f"{place(path, line)}: a triple is head, relation and tail, and a place of this row is empty."
                )
        heads, names, tails = zip(*rows, strict=True)
        numbers = ((entities, heads), (relations, names), (entities, tails))
        yield np.stack([of.find(texts, path, lines) for of, texts in numbers], axis=1)


def _blocks(path: Path, size: int) -> Iterator[tuple[Sequence[int], Sequence[Row]]]:
    found = read_rows(path)
    empty = True
    while block := list(islice(found, size)):
        empty = False
        lines, rows = zip(*block, strict=True)
        yield lines, rows
    if empty:
        raise DataError(f"{path}: holds no rows.")
