"""The most probable facts that are not in a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from murp.errors import ConfigError
from murp.graph import Indices, KnowledgeGraph, KnownFacts
from murp.graph.names.vocabulary import counted
from murp.graph.types import Types
from murp.models import Model
from murp.prediction.answers import Answers
from murp.prediction.calibration import Calibration
from murp.prediction.probability import Floats, sigmoid
from murp.prediction.results import ids, names
from murp.prediction.search import Search
from murp.rows import Tabular
from murp.settings import whole_number

Heads = Literal["seen", "all"]

_CELLS_AT_ONCE = 2**20


@dataclass(frozen=True, eq=False)
class Discoveries:
    """New facts of one relation, best first: heads (m), tails (m), scores (m), places among the new of a head (m)."""

    relation: int
    heads: Indices
    tails: Indices
    scores: Floats
    places: Indices


def heads_of(graph: KnowledgeGraph, relation: int, which: Heads) -> Indices:
    """The heads to try: every entity, or those that are a head of the relation in some split."""
    if which == "all":
        return np.arange(graph.num_entities)
    facts = graph.facts()
    return np.unique(facts[facts[:, 1] == relation, 0]).astype(np.int64)


def discover(
    model: Model,
    graph: KnowledgeGraph,
    relation: int,
    k: int = 100,
    *,
    heads: Heads = "seen",
    types: Types | None = None,
    known: KnownFacts | None = None,
    memory: int | None = None,
    search: Search | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> Discoveries:
    """The ``k`` best-scored facts (s, relation, o) that no split states, over the chosen heads and all tails.

    A fact of an entity with itself is left out unless the relation has such facts. All pairs are scored, a batch at a
    time, and only the best so far are kept. What ``types`` refuse is left out, and of two facts that cannot both hold
    (two tails of a head that has one) the worse. ``known`` saves preparing the facts again, ``search`` is for a model
    on many ranks (see :func:`murp.prediction.search.top_objects`), ``advance`` is called with the number of heads that
    were just done.
    """
    k = whole_number("k", k)
    if heads not in ("seen", "all"):
        raise ConfigError(f"heads must be one of seen, all, not {heads!r}.")
    answers = Answers(model, graph, known, types=types, search=search)
    asked = heads_of(graph, relation, heads)
    size = max(1, _CELLS_AT_ONCE // min(k, graph.num_entities))
    found_heads, tails, places, scores = *np.zeros((3, 0), np.int64), np.zeros(0)
    for start in range(0, len(asked), size):
        batch = asked[start : start + size]
        best = answers.best(batch, np.full_like(batch, relation), k, new_only=True, memory=memory)
        there = best.entities >= 0
        row, place = np.nonzero(there)
        found_heads, places = np.append(found_heads, batch[row]), np.append(places, place + 1)
        tails, scores = np.append(tails, best.entities[there]), np.append(scores, best.scores[there])
        kept = np.lexsort((tails, found_heads, -scores))
        kept = kept[:k] if types is None else kept[types.compatible(relation, found_heads[kept], tails[kept], k)]
        found_heads, tails, places, scores = found_heads[kept], tails[kept], places[kept], scores[kept]
        advance(len(batch))
    return Discoveries(relation, found_heads, tails, scores, places)


class NewFacts(Tabular):
    """New facts of one relation or of several, each relation's best first; ``found`` has them in numbers.

    It is a sequence of :class:`NewFact`, and a table.
    """

    def __init__(self, graph: KnowledgeGraph, found: Sequence[Discoveries], calibration: Calibration | None) -> None:
        self.graph, self.found, self.calibration = graph, found, calibration

    def __repr__(self) -> str:
        return f"NewFacts({len(self):,} of {counted({'relations': len(self.found)})} of {self.graph.name})"

    def __len__(self) -> int:
        return sum(len(facts.heads) for facts in self.found)

    def __iter__(self) -> Iterator[NewFact]:
        for table in self.tables:
            for row in table.to_pylist():
                yield NewFact(**row)

    def __getitem__(self, place: int) -> NewFact:
        return NewFact(**self.to_arrow().slice(range(len(self))[place], 1).to_pylist()[0])

    @cached_property
    def tables(self) -> list[pa.Table]:
        """An Arrow table for each relation."""
        return [table_of(self.graph, facts, self.calibration) for facts in self.found]

    def to_arrow(self) -> pa.Table:
        """All of them in one Arrow table."""
        return pa.concat_tables(self.tables)

    def columns(self) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = self.to_arrow().to_pydict()
        return found


@dataclass(frozen=True)
class NewFact:
    """A fact that is not in the graph; ``rank`` is its rank among those of its relation."""

    relation: str
    rank: int
    head: str
    tail: str
    head_name: str
    tail_name: str
    score: float
    probability: float
    calibrated: float | None = None


def discover_all(
    model: Model,
    graph: KnowledgeGraph,
    relation: str | None = None,
    k: int = 100,
    *,
    heads: Heads = "seen",
    types: Types | None = None,
    calibration: Calibration | None = None,
    memory: int | None = None,
    search: Search | None = None,
    advance: Callable[[int], None] = lambda done: None,
) -> NewFacts:
    """:func:`discover` for one relation, by id or name, or for every one."""
    known = KnownFacts.of(graph)
    found = [
        discover(
            model, graph, r, k, heads=heads, types=types, known=known, memory=memory, search=search, advance=advance
        )
        for r in relations_asked(graph, relation)
    ]
    return NewFacts(graph, found, calibration)


def relations_asked(graph: KnowledgeGraph, relation: str | None) -> Sequence[int]:
    """The number of one relation, given by id or name; of every relation if none is given."""
    return range(graph.num_relations) if relation is None else [graph.relations.find(relation)]


def schema(*, calibrated: bool) -> pa.Schema:
    """The columns of a file of discoveries."""
    text = pa.large_string()
    columns = {"relation": text, "rank": pa.int64(), "head": text, "tail": text, "head_name": text, "tail_name": text}
    columns |= {"score": pa.float64(), "probability": pa.float64()}
    return pa.schema({**columns, "calibrated": pa.float64()} if calibrated else columns)


def table_of(graph: KnowledgeGraph, found: Discoveries, calibration: Calibration | None) -> pa.Table:
    """One row per fact."""
    columns = {
        "relation": ids(graph.relations, np.full(len(found.heads), found.relation)),
        "rank": np.arange(1, len(found.heads) + 1),
        "head": ids(graph.entities, found.heads),
        "tail": ids(graph.entities, found.tails),
        "head_name": names(graph.entities, found.heads),
        "tail_name": names(graph.entities, found.tails),
        "score": found.scores,
        "probability": sigmoid(found.scores),
    }
    if calibration is not None:
        columns["calibrated"] = calibration.probability(found.scores, found.places)
    return pa.table(columns, schema=schema(calibrated=calibration is not None))
