"""Two runs compared on the same facts: what must be the same, and in which order their ranks lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from murp.errors import DataError
from murp.evaluation import Comparison, Protocol, Ranks, compare_ranks
from murp.graph import KnowledgeGraph, Split, Triples
from murp.graph.names.vocabulary import PLURALS, Vocabulary

if TYPE_CHECKING:
    from murp.runs.run import Run

Order = NDArray[np.int64]


def compare(
    a: Run, b: Run, split: Split, protocol: Protocol, *, samples: int, seed: int, memory: int | None
) -> Comparison:
    """Test whether two runs differ; see :mod:`murp.evaluation.comparison`, and for the defaults
    :meth:`murp.Run.compare`.

    Raises :class:`DataError` unless both rank the same facts among the same entities, filtered by the same known facts,
    in whichever order their files had them.
    """
    mine, theirs = comparable(a.graph, b.graph, split)
    triples = a.graph.split(split)[mine]

    def ranks(run: Run, order: Order) -> Ranks:
        """In one order and with the numbers of A's graph."""
        found = run.evaluate(split, protocol, memory=memory).ranks
        return Ranks(protocol, triples, found.tail[order], found.head[order])

    relation_ids = {int(r): a.graph.relations.id(int(r)) for r in np.unique(triples[:, 1])}
    return compare_ranks(ranks(a, mine), ranks(b, theirs), split, relation_ids, samples=samples, seed=seed)


def comparable(a: KnowledgeGraph, b: KnowledgeGraph, split: Split) -> tuple[Order, Order]:
    """The orders that bring the facts of ``split`` of both graphs in line; an error if ranks do not compare."""
    entities, relations = _numbers(a.entities, b.entities), _numbers(a.relations, b.relations)

    def as_a(triples: Triples) -> Triples:
        return np.stack([entities[triples[:, 0]], relations[triples[:, 1]], entities[triples[:, 2]]], axis=1)

    first, second = a.split(split), as_a(b.split(split))
    mine, theirs = (np.lexsort(triples.T[::-1]) for triples in (first, second))
    if not np.array_equal(first[mine], second[theirs]):
        raise DataError(
            f"the runs do not have the same {split} facts ({len(first):,} and {len(second):,}), so their metrics "
            "cannot be compared. Train both on the same data, with the same --split-seed where that is one file."
        )
    known, other = a.facts(), as_a(b.facts())
    if not np.array_equal(known, other) and not np.array_equal(np.unique(known, axis=0), np.unique(other, axis=0)):
        raise DataError(
            "the runs know different facts, so that other answers are left out of their rankings, and their metrics "
            "cannot be compared. Train both on the same data: train, valid and test together decide the filter."
        )
    return mine, theirs


def _numbers(a: Vocabulary, b: Vocabulary) -> NDArray[np.int32]:
    """The number in ``a`` of each entry of ``b``; an error unless both have the same entries."""
    places = pc.index_in(b.ids, value_set=a.ids)
    if len(a) != len(b) or places.null_count:
        missing = (
            f" ({b.id(places.is_null().index(True).as_py())!r} is only in the second)" if places.null_count else ""
        )
        raise DataError(
            f"the runs do not have the same {PLURALS[a.kind]}: {len(a):,} and {len(b):,}{missing}, so their metrics "
            "cannot be compared. Train both on the same data."
        )
    numbers: NDArray[np.int32] = places.to_numpy(zero_copy_only=False).astype(np.int32)
    return numbers
