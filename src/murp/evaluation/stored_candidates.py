"""Candidates of protocol ``sampled`` that a file has: :mod:`murp.evaluation.candidate_files` describes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from murp.errors import DataError
from murp.evaluation.candidate_files import COLUMNS, SAMPLE, SIDES, TEXT
from murp.evaluation.candidates import Drawn, Part, Questions, keys_of
from murp.evaluation.ranks import Sample
from murp.graph import Indices
from murp.graph.names.lookup import Numbers

Marks = NDArray[np.bool_]
UNREADABLE = (OSError, pa.ArrowException)


class Stored:
    """A file of candidates; ``candidates``: how many a question has, if so many are left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.file = pq.ParquetFile(path)
        except FileNotFoundError:
            raise DataError(f"no file of candidates at {path}.") from None
        except UNREADABLE as error:
            raise self._unreadable(error) from error
        schema = self.file.schema_arrow
        if missing := [name for name in COLUMNS if name not in schema.names]:
            raise DataError(f"{path}: has no column {', '.join(missing)}. A question has {', '.join(COLUMNS)}.")
        kind = schema.field("candidates").type
        if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
            raise DataError(f"{path}: the column candidates has the type {kind}. It must have lists of ids.")
        self.told = _told(self.file)
        number = self.told.get("candidates")
        self.candidates = number if type(number) is int and number > 0 else self._longest()

    def sample(self, digest: str) -> Sample:
        """What a report says of the candidates; the seed only if they are still those that it drew."""
        seed = self.told.get("seed")
        drawn = type(seed) is int and digest == self.told.get("digest")
        return Sample(self.candidates, seed if drawn else None, digest)

    def parts(self, questions: Questions, size: int) -> Iterator[Part]:
        """The candidates of all questions, in the order of the file, ``size`` rows at a time."""
        order = np.argsort(questions.keys, kind="stable")
        ordered = questions.keys[order]
        seen = np.zeros(len(questions), bool)
        names = Numbers(questions.graph.entities), Numbers(questions.graph.relations)
        begun = 0
        for batch in self._batches(size):
            rows = Rows(self.path, begun, batch, questions, *names)
            subject, relation, target = rows.asked()
            wanted = keys_of(subject, relation, target)
            low, high = ordered.searchsorted(wanted), ordered.searchsorted(wanted, "right")
            found = order[np.minimum(low, len(order) - 1)]
            of = questions.subjects[found], questions.relations[found], questions.targets[found]
            same = (of[0] == subject) & (of[1] == relation) & (of[2] == target)
            rows.refuse(~same, "its fact is not in the split that is evaluated")
            rows.refuse(seen[found] | _repeated(found), "an earlier row has the same question")
            drawn = rows.candidates()
            rows.check(found, drawn, self.candidates)
            which = order[_ranges(low, high - low)]  # a fact may be in the split several times
            seen[which] = True
            yield which, np.repeat(drawn, high - low, axis=0)
            begun += len(batch)
        if not seen.all():
            raise self._incomplete(questions, seen)

    def _incomplete(self, questions: Questions, seen: Marks) -> DataError:
        graph, first = questions.graph, int(seen.argmin())
        side, relation = divmod(int(questions.relations[first]), graph.num_relations)
        ends = [graph.entities.id(int(of[first])) for of in (questions.subjects, questions.targets)]
        fact = ", ".join((ends[side], graph.relations.id(relation), ends[1 - side]))
        return DataError(
            f"{self.path}: {int((~seen).sum()):,} of {len(seen):,} questions of the split are missing; the first asks "
            f"for the {SIDES[side]} of ({fact}). Every fact needs a row for its tail and one for its head."
        )

    def _batches(self, size: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.file.iter_batches(size, columns=list(COLUMNS))
        except UNREADABLE as error:
            raise self._unreadable(error) from error

    def _longest(self) -> int:
        try:
            batches = self.file.iter_batches(1024, columns=["candidates"])
            return max((pc.max(pc.list_value_length(one.column(0))).as_py() or 0 for one in batches), default=0)
        except UNREADABLE as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> DataError:
        return DataError(f"{self.path}: cannot be read as Parquet: {error}. Get or write it again.")


@dataclass
class Rows:
    """Some rows of a file, the first of them after ``begun`` others."""

    path: Path
    begun: int
    batch: pa.RecordBatch
    questions: Questions
    entities: Numbers
    relations: Numbers

    def asked(self) -> tuple[Indices, Indices, Indices]:
        """Subjects, relations and targets (B)."""
        head, tail = (self.entities.find(self._texts(name), self.where) for name in ("head", "tail"))
        relation = self.relations.find(self._texts("relation"), self.where)
        side = pc.fill_null(pc.index_in(self._texts("asked"), value_set=pa.array(SIDES, TEXT)), -1).to_numpy(False)
        self.refuse(side < 0, "asked is neither head nor tail")
        reciprocal = relation + self.questions.graph.num_relations * side
        return np.where(side, tail, head), reciprocal, np.where(side, head, tail)

    def candidates(self) -> Drawn:
        """(B, n), -1 where a question has fewer than others."""
        lists = self.batch.column("candidates")
        self.refuse(pc.is_null(lists).to_numpy(False), "it has no list of candidates")
        counts = pc.list_value_length(lists).to_numpy(False).astype(np.int64)
        texts, of_row = _as_text(lists.flatten()), np.repeat(np.arange(len(counts)), counts)
        empty = np.bincount(of_row, weights=pc.is_null(texts).to_numpy(False), minlength=len(counts)) > 0
        self.refuse(empty, "one of its candidates is empty")
        coded = texts.dictionary_encode()
        codes = coded.indices.to_numpy(False)

        def where(distinct: int) -> str:
            return self.where(int(of_row[int((codes == distinct).argmax())]))

        numbers = self.entities.find(coded.dictionary, where)
        drawn = np.full((len(counts), int(counts.max(initial=0))), -1, np.int32)
        drawn[np.arange(drawn.shape[1]) < counts[:, None]] = numbers[codes]
        return drawn

    def check(self, which: Indices, drawn: Drawn, candidates: int) -> None:
        """Raise if a candidate is an answer or comes twice, or if there are not as many as there should be."""
        asked = self.questions
        known = asked.known.states(asked.subjects[which], asked.relations[which], drawn.astype(np.int64))
        self._refuse_entity((drawn == asked.targets[which, None]), drawn, "is the answer")
        self._refuse_entity(known & (drawn >= 0), drawn, "is a known answer")
        ascending = np.sort(drawn, axis=1)
        twice = (ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] >= 0)
        self._refuse_entity(twice, ascending[:, 1:], "comes twice")
        left = asked.graph.num_entities - np.bincount(asked.taken(which)[0], minlength=len(which))
        counts, wanted = (drawn >= 0).sum(axis=1), np.minimum(candidates, left)
        if (wrong := counts != wanted).any():
            row = int(wrong.argmax())
            raise DataError(
                f"{self.where(row)}: it has {counts[row]:,} candidates instead of {wanted[row]:,}. Every question "
                "needs the same number, or all that are left."
            )

    def where(self, row: int) -> str:
        return f"{self.path}, row {self.begun + row + 1}"

    def refuse(self, wrong: Marks, why: str) -> None:
        """Raise for the first row that is ``wrong`` (B)."""
        if wrong.any():
            raise DataError(f"{self.where(int(wrong.argmax()))}: {why}. Correct or remove the row.")

    def _refuse_entity(self, wrong: Marks, drawn: Drawn, why: str) -> None:
        if wrong.any():
            row, place = (int(of[0]) for of in np.nonzero(wrong))
            name = self.questions.graph.entities.label(int(drawn[row, place]))
            raise DataError(
                f"{self.where(row)}: the candidate {name} {why}. Candidates are distinct and no known answers."
            )

    def _texts(self, name: str) -> pa.Array:
        column = _as_text(self.batch.column(name))
        self.refuse(pc.is_null(column).to_numpy(False), f"the field {name} is empty")
        return column


def file_digest(path: Path) -> str:
    """Of the bytes of a file: ranks compare it, as each reads its own copy."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}.") from error


def _told(file: pq.ParquetFile) -> dict[str, Any]:
    """What the writer said of its candidates; nothing of a file from elsewhere."""
    try:
        found = json.loads((file.metadata.metadata or {}).get(SAMPLE, b"{}"))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _as_text(column: pa.Array) -> pa.Array:
    return column if column.type == TEXT else column.cast(TEXT)


def _repeated(numbers: Indices) -> Marks:
    """Which of them are in an earlier place too."""
    repeated = np.ones(len(numbers), bool)
    repeated[np.unique(numbers, return_index=True)[1]] = False
    return repeated


def _ranges(starts: Indices, counts: Indices) -> Indices:
    """starts[0], starts[0] + 1, … counts[0] of them, then those of the next."""
    ends = np.cumsum(counts)
    return np.arange(counts.sum()) + np.repeat(starts - ends + counts, counts)
