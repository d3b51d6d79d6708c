"""Make one graph from the facts of files: join names, shorten ids, collect findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from murp.errors import DataError
from murp.graph.indexing import index
from murp.graph.knowledge_graph import KnowledgeGraph
from murp.graph.names.tidy import BLANKS, BlankName, tidy_array
from murp.graph.names.vocabulary import Vocabulary
from murp.graph.reading.columns import COLUMNS
from murp.graph.reading.facts import Facts

_KINDS = ("entity", "relation")


def graph_of(name: str, parts: Sequence[Facts], names: Mapping[str, pa.Table] | None = None) -> KnowledgeGraph:
    """The graph of one part (all in train) or of three; ``names`` given separately are used before the files' own."""
    tables = [part.triples for part in parts]
    tables += [tables[0].slice(0, 0)] * (3 - len(tables))
    given = names or {}
    try:
        graph = index(name, *tables, **{f"{kind}_names": _names(kind, parts, given) for kind in _KINDS})
    except BlankName as error:
        raise _blank(parts) or error from None
    graph = _shortened(graph, parts)
    own = [finding for part in parts for finding in part.findings]
    return replace(graph, findings=(*own, *graph.findings))


def _names(kind: str, parts: Sequence[Facts], given: Mapping[str, pa.Table]) -> pa.Table | None:
    """All names of one kind of thing in one table: the first row of an id counts."""
    tables = [given.get(f"{kind}_names"), *(getattr(part, f"{kind}_names") for part in parts)]
    found = [tidied_names(table) for table in tables if table is not None]
    return pa.concat_tables(found, promote_options="default") if found else None


def tidied_names(table: pa.Table) -> pa.Table:
    """Names after the rule for names, on one line; empty names are dropped."""
    columns = {column: tidy_array(table[column].combine_chunks()) for column in table.column_names}
    for column in ("name", "gloss"):
        if column in columns:
            text = columns[column]
            if pc.any(pc.match_substring_regex(text, "[\t\r\n]")).as_py():
                text = pc.replace_substring_regex(text, "[\t\r\n ]+", " ")
            columns[column] = pc.if_else(pc.equal(text, ""), pa.scalar(None, pa.large_string()), text)
    return pa.table(columns)


def _blank(parts: Sequence[Facts]) -> DataError | None:
    """The error for the first blank name, with its place."""
    for part in parts:
        blank = [pc.equal(pc.utf8_trim(part.triples[role], characters=BLANKS), "") for role in COLUMNS]
        rows = [row for row in (pc.index(one, True).as_py() for one in blank) if row >= 0]
        if rows:
            role = COLUMNS[[pc.index(one, True).as_py() for one in blank].index(min(rows))]
            return DataError(f"{part.place(min(rows))}: the {role} is blank. Fill it in or remove the row.")
    return None


def _shortened(graph: KnowledgeGraph, parts: Sequence[Facts]) -> KnowledgeGraph:
    """Ids shortened with the prefixes of the files.

    If a prefix has two meanings, the first is used. A prefix is not used if some ids already begin with it: two ids
    must not become one. If two beginnings match, the longer is used.
    """
    prefixes: dict[str, str] = {}
    for part in parts:
        for prefix, beginning in part.prefixes.items():
            prefixes.setdefault(prefix, beginning)
    if not prefixes:
        return graph
    vocabularies = (graph.entities, graph.relations)
    for prefix in list(prefixes):
        if any(pc.any(pc.starts_with(one.ids, f"{prefix}:")).as_py() for one in vocabularies):
            del prefixes[prefix]
    entities, relations = (_short(one, prefixes) for one in vocabularies)
    return replace(graph, entities=entities, relations=relations)


def _short(vocabulary: Vocabulary, prefixes: Mapping[str, str]) -> Vocabulary:
    ids, done = vocabulary.ids, pa.array(np.zeros(len(vocabulary), dtype=np.bool_))
    for prefix, beginning in sorted(prefixes.items(), key=lambda pair: -len(pair[1])):
        rest = pc.utf8_slice_codeunits(ids, len(beginning))
        fits = pc.and_(pc.starts_with(vocabulary.ids, beginning), pc.and_not(pc.not_equal(rest, ""), done))
        if pc.any(fits).as_py():
            short, nothing = (pa.scalar(text, pa.large_string()) for text in (f"{prefix}:", ""))
            ids = pc.if_else(fits, pc.binary_join_element_wise(short, rest, nothing), ids)
            done = pc.or_(done, fits)
    return Vocabulary(vocabulary.kind, ids, vocabulary.names, vocabulary.glosses)
