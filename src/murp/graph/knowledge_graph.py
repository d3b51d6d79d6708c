"""A knowledge graph: integer-coded facts with names, in three splits."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from murp.errors import DataError
from murp.extras import need
from murp.graph.findings import Finding
from murp.graph.names.vocabulary import Vocabulary, counted
from murp.graph.reading.columns import EACH_BY_TITLE, Columns
from murp.rows import html_table, pandas

Triples = NDArray[np.int32]
ColumnChoice = str | Sequence[str | int] | Mapping[str, str | int] | None
Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")
FACTS_SHOWN = 5  # of a graph in a notebook
_ROWS_AT_ONCE = 100_000


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

    def _repr_html_(self) -> str:
        from murp.graph.indexing import table_of

        first = table_of(self, self.train[:FACTS_SHOWN])
        said = html.escape(f"{self.name}: {counted(self.counts())}; the first facts of train:")
        return f"<div>{said}</div>{html_table(first.column_names, zip(*first.to_pydict().values(), strict=True))}"

    def __len__(self) -> int:
        """How many facts there are, duplicates counted."""
        return len(self.train) + len(self.valid) + len(self.test)

    def __bool__(self) -> bool:
        return True  # also a graph without facts is one

    def __iter__(self) -> Iterator[tuple[str, str, str]]:
        """The facts as ids: train, then valid, then test."""
        from murp.graph.indexing import table_of

        for split in SPLITS:
            triples = self.split(split)
            for begin in range(0, len(triples), _ROWS_AT_ONCE):
                table = table_of(self, triples[begin : begin + _ROWS_AT_ONCE])
                yield from zip(*(column.to_pylist() for column in table.columns), strict=True)

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

    @classmethod
    def from_triples(
        cls,
        triples: Iterable[Sequence[object]],
        *,
        valid: float | Iterable[Sequence[object]] = 0.05,
        test: float | Iterable[Sequence[object]] = 0.05,
        seed: int = 0,
        name: str = "graph",
    ) -> KnowledgeGraph:
        """The graph of (head, relation, tail) triples of strings or whole numbers.

        ``valid`` and ``test`` are shares that are held out, drawn by ``seed`` so that everything in them is also in
        train (0 and 0: all facts are in train), or triples of their own.
        """
        from murp.graph.building import build, listed

        return build(name, listed, triples, valid, test, seed)

    @classmethod
    def from_dataframe(
        cls,
        frame: Any,
        columns: ColumnChoice = None,
        *,
        valid: Any = 0.05,
        test: Any = 0.05,
        seed: int = 0,
        name: str = "graph",
    ) -> KnowledgeGraph:
        """The graph of a data frame of pandas or polars, a fact a row; ``columns`` as in :meth:`load`.

        ``valid`` and ``test`` are shares as in :meth:`from_triples`, or frames of their own.
        """
        from murp.graph.building import build
        from murp.graph.building import frame as reader

        return build(name, reader(Columns.of(columns)), frame, valid, test, seed)

    @classmethod
    def from_arrow(
        cls,
        table: Any,
        columns: ColumnChoice = None,
        *,
        valid: Any = 0.05,
        test: Any = 0.05,
        seed: int = 0,
        name: str = "graph",
    ) -> KnowledgeGraph:
        """The graph of an Arrow table, or of anything that gives Arrow data (the result of a query of DuckDB)."""
        return cls.from_dataframe(table, columns, valid=valid, test=test, seed=seed, name=name)

    @classmethod
    def from_networkx(
        cls,
        graph: Any,
        relation: str | None = None,
        *,
        valid: float = 0.05,
        test: float = 0.05,
        seed: int = 0,
        name: str = "",
    ) -> KnowledgeGraph:
        """The graph of a NetworkX graph, a fact an edge.

        ``relation`` is the attribute of edges that is the relation; None: the one with a known title (relation, type,
        label, …), else the keys of parallel edges, else all are ``edge``. ``name`` or ``label`` of nodes is their name.
        """
        from murp.graph.building import build
        from murp.graph.reading.networks import networkx_facts

        named = name or str(getattr(graph, "name", "") or "graph")
        return build(named, lambda data, where: networkx_facts(data, where, relation), graph, valid, test, seed)

    @classmethod
    def from_rdf(
        cls,
        source: Any,
        format: str | None = None,
        *,
        valid: Any = 0.05,
        test: Any = 0.05,
        seed: int = 0,
        name: str = "graph",
    ) -> KnowledgeGraph:
        """The graph of RDF: a path, text or bytes in a ``format`` (nt, nq, ttl, trig, rdf, jsonld), or of rdflib."""
        from murp.graph.building import build, rdf

        return build(name, rdf(format), source, valid, test, seed)

    def to_dataframe(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The facts as a data frame with columns head, relation, tail and split."""
        from murp.graph.indexing import table_of

        tables = [
            table_of(self, self.split(split)).append_column(
                "split", pa.array([split] * len(self.split(split)), pa.string())
            )
            for split in SPLITS
        ]
        table = pa.concat_tables(tables)
        if library == "polars":
            return need("polars", "polars", "a data frame of polars").from_arrow(table)
        pandas()
        return table.to_pandas()

    def filter(
        self,
        where: Callable[[str, str, str], bool] | None = None,
        *,
        relations: Iterable[str] | None = None,
        entities: Iterable[str] | None = None,
    ) -> KnowledgeGraph:
        """The graph of some facts: of these ``relations``, between these ``entities``, for which ``where`` is true.

        ``where`` is given the ids of head, relation and tail. What is no longer mentioned is left out.
        """
        from murp.graph.building import filtered

        return filtered(self, relations, entities, where)

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

    @overload
    def split(self, name: Split) -> Triples: ...

    @overload
    def split(self, *, valid: float = ..., test: float = ..., seed: int = ...) -> KnowledgeGraph: ...

    def split(
        self, name: Split | None = None, *, valid: float = 0.05, test: float = 0.05, seed: int = 0
    ) -> Triples | KnowledgeGraph:
        """``split("train")``: the triples of one split. ``split(valid=0.1, test=0.1, seed=1)``: the graph divided anew.

        The facts of all splits are taken together, and shares of them drawn by ``seed`` so that everything in valid and
        test is also in train.
        """
        if name is not None:
            if name not in SPLITS:
                raise DataError(f"there is no split {name!r}: choose train, valid or test.")
            triples: Triples = getattr(self, name)
            return triples
        from murp.graph.building import divided

        return replace(divided(self, valid=valid, test=test, seed=seed), source="")

    def facts(self) -> Triples:
        """Every known fact: train, valid and test one after the other."""
        return np.concatenate([self.train, self.valid, self.test])

    def with_reciprocals(self, triples: Triples) -> Triples:
        """(s, r, o) for every triple, then (o, r + R, s) for every triple; shape (2n, 3)."""
        swapped = triples[:, ::-1] + np.array([0, self.num_relations, 0], dtype=np.int32)
        return np.concatenate([triples, swapped])
