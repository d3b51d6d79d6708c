"""Add facts to a graph, about entities and relations that it has (by id or name) and about new ones."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import ConfigError, DataError, UnknownNameError
from murp.graph.building import frame, listed
from murp.graph.formats import read_facts
from murp.graph.keys import fact_keys
from murp.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split, Triples
from murp.graph.names.tidy import tidy_ids
from murp.graph.names.vocabulary import PLURALS, Vocabulary
from murp.graph.reading.columns import EACH_BY_TITLE, Columns
from murp.graph.reading.facts import Facts
from murp.paths import not_a_file

New = Literal["all", "entities", "relations"]
NEW: tuple[New, ...] = ("all", "entities", "relations")


@dataclass(frozen=True, eq=False)
class Growth:
    """``graph`` keeps its entities and relations with their numbers; new ones follow them.

    ``facts`` (n, 3) were added to train; ``left_out`` counts facts that were already in a split.
    """

    graph: KnowledgeGraph
    facts: Triples
    entities: int  # how many of the graph's entities, the last ones, are new
    relations: int
    left_out: dict[Split, int]


def given_facts(facts: Any, columns: Columns = EACH_BY_TITLE) -> Facts:
    """Facts as Python has them: a file, a list of (head, relation, tail), a data frame or an Arrow table."""
    if isinstance(facts, str | os.PathLike):
        path = Path(facts)
        if (why := not_a_file(path)) is not None:
            raise DataError(f"{path} {why}.")
        try:
            return read_facts(path, columns)
        except FileNotFoundError:
            raise DataError(f"no file of facts at {path}.") from None
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if hasattr(facts, "columns") or hasattr(facts, "__arrow_c_stream__"):
        return frame(columns)(facts, "the facts")
    return listed(facts, "the facts")


def add_facts(graph: KnowledgeGraph, facts: Facts, *, new: New = "all") -> Growth:
    """``graph`` with ``facts`` at the end of its train.

    A name is looked up among the ids, then among unique names. If it is not found, it is new; ``new`` says what may be
    new: "all", only "entities" or only "relations". Facts that are already in train are left out, and so are facts of
    valid and test, since they are there to be predicted.
    """
    if new not in NEW:
        raise ConfigError(f"new must be one of {', '.join(NEW)}, not {new!r}.")
    triples = facts.triples
    ends, entities = _numbered(
        graph.entities, [triples["head"], triples["tail"]], facts.entity_names, may_be_new=new != "relations"
    )
    middle, relations = _numbered(
        graph.relations, [triples["relation"]], facts.relation_names, may_be_new=new != "entities"
    )
    coded = np.stack([ends[0], middle[0], ends[1]], axis=1).astype(np.int32)
    sizes = len(entities), len(relations)
    # Keys of one call can be compared.
    parts = [graph.split(split) for split in SPLITS]
    keys, *known = np.split(
        fact_keys(np.concatenate([coded, *parts]), *sizes), np.cumsum([len(coded), *map(len, parts[:-1])])
    )
    once = np.sort(np.unique(keys, return_index=True)[1])
    coded, keys = coded[once], keys[once]
    stated = {split: np.isin(keys, of) for split, of in zip(SPLITS, known, strict=True)}
    fresh = coded[~np.any([*stated.values()], axis=0)]
    if len(fresh) == 0:
        raise DataError(f"{graph.name} already has all of these facts: there is nothing to add.")
    if not (fresh[:, [0, 2]] < graph.num_entities).any():
        raise UnknownNameError(
            f"no fact names an entity of {graph.name}, so nothing says where the new ones belong: "
            f"{_unknown(graph.entities, entities.id(int(fresh[0, 0])))} Check the spelling. Names are looked up among "
            "the ids of the graph, then among its names."
        )
    grown = replace(
        graph, entities=entities, relations=relations, train=np.concatenate([graph.train, fresh]), findings=()
    )
    counts = {split: int(found.sum()) for split, found in stated.items()}
    return Growth(grown, fresh, sizes[0] - graph.num_entities, sizes[1] - graph.num_relations, counts)


def _numbered(
    vocabulary: Vocabulary, columns: Sequence[pa.ChunkedArray], names: pa.Table | None, *, may_be_new: bool
) -> tuple[list[NDArray[np.int64]], Vocabulary]:
    """Each column in numbers, and the vocabulary with the new things behind the old ones."""
    joined = pa.chunked_array([chunk for column in columns for chunk in column.chunks], type=pa.large_string())
    coded = joined.combine_chunks().dictionary_encode()
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    tidied = tidy_ids(coded.dictionary, vocabulary.kind, PLURALS[vocabulary.kind])
    codes = coded.indices.to_numpy(False) if tidied.codes is None else tidied.codes[coded.indices.to_numpy(False)]
    places = pc.fill_null(pc.index_in(tidied.ids, value_set=vocabulary.ids), -1).to_numpy(False).astype(np.int64)
    missing = np.flatnonzero(places < 0)
    if vocabulary.names is not None and len(missing):
        texts = tidied.ids.take(pa.array(missing))
        named = pc.is_in(texts, value_set=vocabulary.names).to_numpy(False)
        for row, text in zip(missing[named].tolist(), texts.filter(pa.array(named)).to_pylist(), strict=True):
            places[row] = vocabulary.find(text)  # of a name that several have it says which
        missing = np.flatnonzero(places < 0)
    if len(missing) and not may_be_new:
        try:
            vocabulary.find(tidied.ids[int(missing[0])].as_py())
        except UnknownNameError as error:  # with the closest names
            kinds = PLURALS[vocabulary.kind]
            raise UnknownNameError(f"{error} To add new {kinds}, give --new all or --new {kinds}.") from None
    places[missing] = len(vocabulary) + np.arange(len(missing))
    ends = np.cumsum([len(column) for column in columns])
    return np.split(places[codes], ends[:-1]), _longer(vocabulary, tidied.ids.take(pa.array(missing)), names)


def _unknown(vocabulary: Vocabulary, text: str) -> str:
    """The message about a name that is not in the vocabulary, with the closest names."""
    try:
        vocabulary.find(text)
    except UnknownNameError as error:
        return str(error)
    return ""


def _longer(vocabulary: Vocabulary, ids: pa.Array, names: pa.Table | None) -> Vocabulary:
    """The vocabulary with more ids, and their names where the facts bring some."""
    if len(ids) == 0:
        return vocabulary
    old = vocabulary.table()
    columns: dict[str, Any] = {"id": ids}
    rows = None if names is None else pc.index_in(ids, value_set=names["id"].combine_chunks())
    for column in ("name", "gloss"):
        brought = names is not None and column in names.column_names
        if brought or column in old.column_names:
            nothing = pa.nulls(len(ids), pa.large_string())
            columns[column] = names[column].combine_chunks().take(rows) if brought else nothing  # type: ignore[index]
            if column not in old.column_names:
                old = old.append_column(column, pa.nulls(len(old), pa.large_string()))
    return Vocabulary.from_table(vocabulary.kind, pa.concat_tables([old.select([*columns]), pa.table(columns)]))
