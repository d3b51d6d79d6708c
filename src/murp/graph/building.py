"""Graphs from Python objects: lists, data frames, Arrow tables, networks."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from murp.errors import DataError
from murp.graph.assembly import graph_of
from murp.graph.indexing import table_of
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Triples
from murp.graph.names.vocabulary import Vocabulary
from murp.graph.reading.columns import COLUMNS, EACH_BY_TITLE, Columns, left_out
from murp.graph.reading.facts import Facts, Ids, triples_of
from murp.graph.reading.tables import choose, further, row_of, table_facts
from murp.graph.splitting import split


def build(name: str, read: Callable[[Any, str], Facts], train: Any, valid: Any, test: Any, seed: int) -> KnowledgeGraph:
    """The graph of ``train``, with shares held out by ``seed``, or with separate facts for valid and test."""
    shares = [isinstance(one, Real) for one in (valid, test)]
    if all(shares):
        graph = divided(graph_of(name, [read(train, name)]), valid=valid, test=test, seed=seed)
    elif any(shares):
        raise DataError("valid and test must both be shares of the facts, or both be facts.")
    else:
        parts = [read(one, f"{name}, {part}") for one, part in zip((train, valid, test), SPLITS, strict=True)]
        graph = graph_of(name, parts)
    for finding in graph.findings:
        warnings.warn(f"{name}: {finding.sentence}", stacklevel=3)
    return graph


def divided(graph: KnowledgeGraph, *, valid: float = 0.05, test: float = 0.05, seed: int) -> KnowledgeGraph:
    """Split all facts of a graph again; if none can be held out, all are in train."""
    if not (0 <= valid < 1 and 0 <= test < 1 and valid + test < 1):
        raise DataError(
            f"the shares of valid and test must be at least 0 and leave facts for train, not {valid} and {test}."
        )
    facts = graph.facts() if len(graph.valid) or len(graph.test) else graph.train
    parts = split(facts, seed=seed, valid=valid, test=test)
    if (valid and not len(parts[1])) or (test and not len(parts[2])):
        parts = (facts, facts[:0], facts[:0])
    return replace(graph, train=parts[0], valid=parts[1], test=parts[2], split_seed=seed)


def filtered(
    graph: KnowledgeGraph,
    relations: Iterable[str] | None,
    entities: Iterable[str] | None,
    where: Callable[[str, str, str], bool] | None,
) -> KnowledgeGraph:
    """The facts that satisfy all conditions, with their entities and relations."""
    kept = {}
    selected = _selected(graph.entities, entities), _selected(graph.relations, relations)
    for part in SPLITS:
        triples = graph.split(part)
        fits = selected[0][triples[:, 0]] & selected[1][triples[:, 1]] & selected[0][triples[:, 2]]
        if where is not None:
            rows = table_of(graph, triples[fits])
            fits[fits] = [
                bool(where(*row)) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
            ]
        kept[part] = triples[fits]
    facts = np.concatenate(list(kept.values()))
    entity, relation = np.unique(facts[:, [0, 2]]), np.unique(facts[:, 1])

    def numbered(triples: Triples) -> Triples:
        ends = np.searchsorted(entity, triples[:, [0, 2]])
        return np.stack([ends[:, 0], np.searchsorted(relation, triples[:, 1]), ends[:, 1]], axis=1).astype(np.int32)

    return KnowledgeGraph(
        graph.name,
        _taken(graph.entities, entity),
        _taken(graph.relations, relation),
        train=numbered(kept["train"]),
        valid=numbered(kept["valid"]),
        test=numbered(kept["test"]),
    )


def listed(triples: Iterable[Sequence[object]], where: str) -> Facts:
    """Facts from a list of triples of strings or whole numbers."""
    rows = triples if isinstance(triples, list | tuple) else list(triples)
    for number, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) != 3:
            raise DataError(f"{where}, triple {number + 1}: not head, relation and tail, but {str(row)[:80]!r}.")
    if not rows:
        raise DataError(f"{where}: holds no triples.")
    heads, relations, tails = zip(*rows, strict=True)
    place = _triple(where)
    try:
        if all(type(value) is str and value for column in (heads, relations, tails) for value in column):
            return Facts(triples_of(heads, relations, tails), place)
    except UnicodeEncodeError:
        pass  # said below, with its place
    entities, of_relations = Ids(), Ids()
    columns = [
        [ids(_plain(value), f"{place(row)}: the {role}") for row, value in enumerate(values)]
        for role, ids, values in zip(
            COLUMNS, (entities, of_relations, entities), (heads, relations, tails), strict=True
        )
    ]
    findings = [*entities.findings(where), *of_relations.findings(where)]
    return Facts(triples_of(*columns), place, findings=findings)


def frame(columns: Columns = EACH_BY_TITLE) -> Callable[[Any, str], Facts]:
    """Facts from a data frame of pandas or polars, or from other objects that give Arrow data."""

    def read(data: Any, where: str) -> Facts:
        data = data.collect() if hasattr(data, "collect") else data  # a lazy one
        if isinstance(data, pa.Table) or not hasattr(data, "columns"):
            return table_facts(_arrow(data, where), columns, where, where)
        titles = [str(title) for title in data.columns]
        places = choose(titles, columns, where)
        # What the other columns hold may be nothing that Arrow knows.
        three = data.iloc[:, list(places)] if hasattr(data, "iloc") else data[:, list(places)]
        facts = table_facts(_arrow(three, where), Columns(header=False), where, where)
        return replace(facts, findings=further(where, left_out(titles, places)))

    return read


def rdf(form: str | None) -> Callable[[Any, str], Facts]:
    """Facts from RDF: a path, text or bytes in a format such as ``ttl``, or a graph of rdflib."""
    from murp.graph.formats.rdf import read as read_file
    from murp.graph.formats.rdf import read_text

    def read(data: Any, where: str) -> Facts:
        if hasattr(data, "serialize"):
            text = data.serialize(format="nt", encoding="utf-8")
            return read_text(text, ".nt", where)
        if form is not None and isinstance(data, str | bytes):
            return read_text(data.encode() if isinstance(data, str) else data, f".{form.lstrip('.')}", where)
        return read_file(Path(os.fspath(data)), EACH_BY_TITLE)

    return read


def _arrow(data: Any, where: str) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if not hasattr(data, "iloc") and not hasattr(data, "__arrow_c_stream__"):
        raise DataError(f"{where}: {type(data).__name__} is not a data frame. Give one of pandas or polars.")
    try:
        if hasattr(data, "iloc"):
            return pa.Table.from_pandas(data, preserve_index=False)
        return pa.table(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"{where}: cannot be read as a table: {error}. Ids are strings or whole numbers.") from error


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _triple(where: str) -> Callable[[int], str]:
    return lambda row: row_of(where)(row).replace(", row ", ", triple ")


def _selected(vocabulary: Vocabulary, names: Iterable[str] | None) -> np.ndarray[Any, np.dtype[np.bool_]]:
    selected = np.full(len(vocabulary), names is None, dtype=np.bool_)
    for name in names or ():
        selected[vocabulary.find(name)] = True
    return selected


def _taken(vocabulary: Vocabulary, places: Any) -> Vocabulary:
    return Vocabulary.from_table(vocabulary.kind, vocabulary.table().take(pa.array(places)))
