"""A knowledge graph: integer-coded facts with names, in three splits."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from murp.graph.columns import EACH_BY_TITLE, Columns
from murp.graph.findings import Finding
from murp.graph.vocabulary import Vocabulary, counted

Triples = NDArray[np.int32]
ColumnChoice = str | Sequence[str | int] | Mapping[str, str | int] | None
Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


@dataclass(frozen=True, eq=False, repr=False)
class KnowledgeGraph:
    """Facts (head, relation, tail) as rows of int32 indices into two vocabularies.

    ``train``, ``valid`` and ``test`` have shape (n, 3), columns head, relation, tail, rows in the
    order of the files, duplicates kept: what the files say is what you get, and
    ``murp data audit`` reports its flaws. Relations are numbered 0 … R-1; the reciprocal of
    relation r is r + R and exists only in the view :meth:`with_reciprocals` gives, never on disk.
    """

    name: str
    entities: Vocabulary
    relations: Vocabulary
    train: Triples
    valid: Triples
    test: Triples
    source: str = ""  # the name or path it was loaded from, the seed that split it where that is one file, and what
    split_seed: int = 0  # was said of its columns: so that a run can say how to repeat it
    columns: Columns = EACH_BY_TITLE
    findings: tuple[Finding, ...] = ()  # what was changed or left out in reading

    def __repr__(self) -> str:
        return f"KnowledgeGraph({self.name!r}: {counted(self.counts())})"

    @classmethod
    def load(
        cls,
        source: str | os.PathLike[str],
        *,
        data_dir: str | os.PathLike[str] | None = None,
        seed: int = 0,
        columns: ColumnChoice = None,
        header: bool = True,
    ) -> KnowledgeGraph:
        """A dataset's name, a folder with train, valid and test, or one file to be split by ``seed``.

        ``columns`` says which column is the head, the relation and the tail, where their titles do not: three titles
        or numbers from 0, or a mapping of the roles to them. ``header=False``: the first row is a fact.
        """
        from murp.graph.sources import load

        directory = None if data_dir is None else Path(data_dir)
        return load(source, data_dir=directory, seed=seed, columns=Columns.of(columns, header=header))

    @classmethod
    def from_tables(
        cls,
        name: str,
        train: pa.Table,
        valid: pa.Table,
        test: pa.Table,
        *,
        entity_names: pa.Table | None = None,
        relation_names: pa.Table | None = None,
    ) -> KnowledgeGraph:
        """The graph of three Arrow tables of strings, columns head, relation, tail.

        Things are numbered in order of first appearance (train, valid, test); names have columns id, name
        and perhaps gloss.
        """
        from murp.graph.indexing import index

        return index(name, train, valid, test, entity_names=entity_names, relation_names=relation_names)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the graph into a new folder, whole or not at all; :meth:`load` reads it back."""
        from murp.graph.storage import save

        save(self, Path(folder))

    @property
    def num_entities(self) -> int:
        return len(self.entities)

    @property
    def num_relations(self) -> int:
        """R, the relations of the files; models with reciprocals have 2R."""
        return len(self.relations)

    def counts(self) -> dict[str, int]:
        """How many entities and relations there are, and how many triples in each split."""
        splits: dict[str, int] = {name: len(self.split(name)) for name in SPLITS}
        return {"entities": self.num_entities, "relations": self.num_relations, **splits}

    def split(self, name: Split) -> Triples:
        """The triples of one split."""
        triples: Triples = getattr(self, name)
        return triples

    def facts(self) -> Triples:
        """Every known fact: train, valid and test one after the other."""
        return np.concatenate([self.train, self.valid, self.test])

    def with_reciprocals(self, triples: Triples) -> Triples:
        """(s, r, o) for every triple, then (o, r + R, s) for every triple; shape (2n, 3)."""
        swapped = triples[:, ::-1] + np.array([0, self.num_relations, 0], dtype=np.int32)
        return np.concatenate([triples, swapped])
