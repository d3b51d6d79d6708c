"""From names to numbers and back: make an integer-coded graph from tables of strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.graph.knowledge_graph import KnowledgeGraph, Triples
from murp.graph.names.tidy import Tidied, tidy_ids
from murp.graph.names.vocabulary import PLURALS, Vocabulary
from murp.graph.reading.columns import COLUMNS


def index(
    name: str,
    train: pa.Table,
    valid: pa.Table,
    test: pa.Table,
    *,
    entity_names: pa.Table | None = None,
    relation_names: pa.Table | None = None,
) -> KnowledgeGraph:
    """The graph of three tables with columns head, relation, tail.

    Entities are numbered in order of first appearance in train's heads, train's tails, valid's heads, and so on;
    relations in order of first appearance in train, valid, test. Ids follow the rule of :mod:`murp.graph.names.tidy`,
    and what it changed is in ``findings``. Names (columns id, name and perhaps gloss) are joined by id: the first row
    of an id is used, ids that are not in the graph are ignored.
    """
    tables = (train, valid, test)
    entity_ids, entities = _number("entity", [table[role] for table in tables for role in ("head", "tail")])
    relation_ids, relations = _number("relation", [table["relation"] for table in tables])
    coded: list[Triples] = [np.stack([entities[2 * i], relations[i], entities[2 * i + 1]], axis=1) for i in range(3)]
    return KnowledgeGraph(
        name,
        vocabulary("entity", entity_ids.ids, entity_names),
        vocabulary("relation", relation_ids.ids, relation_names),
        train=coded[0],
        valid=coded[1],
        test=coded[2],
        findings=(*entity_ids.findings, *relation_ids.findings),
    )


def table_of(graph: KnowledgeGraph, triples: Triples) -> pa.Table:
    """The rows of ``triples`` as strings, the inverse of :func:`index`."""
    vocabularies = (graph.entities, graph.relations, graph.entities)
    columns = (vocab.ids.take(pa.array(triples[:, i])) for i, vocab in enumerate(vocabularies))
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def _number(kind: str, columns: Sequence[pa.ChunkedArray]) -> tuple[Tidied, list[NDArray[np.int32]]]:
    """The distinct strings in order of first appearance, and each column as indices into them."""
    chunks = [chunk for column in columns for chunk in column.chunks]
    coded = pa.chunked_array(chunks, type=pa.large_string()).dictionary_encode()
    if not coded.num_chunks:
        return Tidied(pa.array([], pa.large_string()), None, []), [np.empty(0, np.int32) for _ in columns]
    # Arrow encodes all chunks with one dictionary.
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks])
    # The rule is for names, of which there are fewer than rows.
    tidied = tidy_ids(coded.chunk(0).dictionary, kind, PLURALS[kind])
    codes = codes if tidied.codes is None else tidied.codes[codes]
    ends = np.cumsum([len(column) for column in columns])
    return tidied, np.split(codes, ends[:-1])


def vocabulary(kind: str, ids: pa.Array, names: pa.Table | None) -> Vocabulary:
    """Ids with the names that a table has for them."""
    if names is None:
        return Vocabulary(kind, ids)
    rows = pc.index_in(ids, value_set=names["id"].combine_chunks())
    columns = {c: names[c].combine_chunks().take(rows) for c in names.column_names if c != "id"}
    return Vocabulary(kind, ids, columns["name"], columns.get("gloss"))
