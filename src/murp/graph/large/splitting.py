"""Train, valid and test out of one set of facts on disk: what :func:`murp.graph.splitting.split` gives, row for row.

That goes through the distinct facts, numbered in their order, as a random permutation says. Here the facts are sorted
in buckets of heads that each fit into memory. Memory holds 8 bytes for each distinct fact (the permutation), 8 for each
entity and 20 for each fact that is held out; the sorted facts are mapped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from murp.errors import DataError
from murp.graph import arrays
from murp.kernels import numba_splitting as loops

BUCKET, MOST_BUCKETS = 1 << 22, 256  # rows, about; buckets, about
BLOCK = 1 << 20  # rows read at a time
Rows = NDArray[np.int32]
Step = Callable[[int], None]


class OnDisk(NamedTuple):
    """Rows of facts in a file of int32 triples, how many entities and relations there are, and heads' counts (E)."""

    path: Path
    rows: int
    entities: int
    relations: int
    heads: NDArray[np.int64]


class Buckets(NamedTuple):
    """The distinct facts, sorted: mapped ``keys``, where each bucket begins, its first head, and mentions."""

    keys: NDArray[np.int64]
    starts: NDArray[np.int64]
    bounds: NDArray[np.int64]
    of_entity: NDArray[np.int32]
    of_relation: NDArray[np.int64]


class Held(NamedTuple):
    """Facts (n, 3) that are held out, of which the first ``cut`` are valid; ``slots`` find them."""

    facts: Rows
    cut: int
    slots: NDArray[np.int64]

    def parts(self, rows: Rows) -> NDArray[np.int8]:
        """0, 1 or 2 for train, valid or test, of each row."""
        found = np.empty(len(rows), np.int8)
        loops.parts_of(rows, self.facts, self.cut, self.slots, found)
        return found


def blocks(path: Path, rows: int) -> Iterator[Rows]:
    """The rows of a file of int32 triples, a block at a time."""
    with path.open("rb") as file:
        for start in range(0, rows, BLOCK):
            count = 3 * min(BLOCK, rows - start)
            yield _numbers(file, np.int32, count).reshape(-1, 3)


def _numbers(file: BinaryIO, dtype: type[np.signedinteger[Any]], count: int) -> NDArray[Any]:
    """The next numbers of a file that this reading has written."""
    found = np.empty(count, dtype)
    if file.readinto(found.data) != found.nbytes:  # type: ignore[attr-defined]
        raise DataError(f"{file.name} was cut short by another program while the graph was read. Start again.")
    return found


def hold_out(facts: OnDisk, work: Path, *, seed: int, valid: float, test: float, step: Step) -> Held:
    """What is held out by ``seed``: shares ``valid`` and ``test`` of the distinct facts, as far as can be.

    ``step`` is told how many more rows have been gone through; it is told of each row twice.
    """
    buckets = _sorted(facts, work, step)
    order = np.random.default_rng(seed).permutation(len(buckets.keys))
    wanted = [max(1, round(share * len(order))) if share else 0 for share in (valid, test)]
    held = np.empty((sum(wanted), 3), np.int32)
    sizes = facts.relations, facts.entities
    mentions = buckets.of_entity, buckets.of_relation
    found = loops.hold_out(order, buckets.keys, buckets.starts, buckets.bounds, *sizes, *mentions, held)
    del order
    step(facts.rows)
    cut = round(found * wanted[0] / max(1, sum(wanted)))
    if (wanted[0] and not cut) or (wanted[1] and found == cut):
        found = cut = 0  # as murp.graph.building.divided: all are in train where none can be held out
    facts_held = held[:found].copy()
    slots = np.zeros(1 << max(4, (2 * found).bit_length()), np.int64)
    loops.index_facts(facts_held, slots)
    return Held(facts_held, cut, slots)


def _sorted(facts: OnDisk, work: Path, step: Step) -> Buckets:
    """Sort the distinct facts, bucket by bucket, into a file."""
    bounds, bucket_of = _bounds(facts)
    paths = [work / f"bucket{b}.bin" for b in range(len(bounds))]
    keys, places = np.empty(BLOCK, np.int64), np.empty(len(bounds) + 1, np.int64)
    written = np.zeros(len(bounds), np.int64)
    for path in paths:
        path.write_bytes(b"")
    for rows in blocks(facts.path, facts.rows):
        loops.keys_by_bucket(rows, bucket_of, bounds, facts.relations, facts.entities, keys, places)
        more = np.diff(places)
        written += more
        for b in np.flatnonzero(more):
            with paths[b].open("ab") as file:  # one at a time: a system may allow few open files
                arrays.write(file, keys[places[b] : places[b + 1]])
    of_entity, of_relation = np.zeros(facts.entities, np.int32), np.zeros(facts.relations, np.int64)
    counts = []
    distinct = work / "distinct.bin"
    with distinct.open("wb") as out:
        for path, first, count in zip(paths, bounds, written, strict=True):
            with path.open("rb") as bucket:
                own = _numbers(bucket, np.int64, int(count))
            own.sort()
            own = own[np.diff(own, prepend=-1) != 0]
            arrays.write(out, own)
            loops.count_mentions(own, first, facts.relations, facts.entities, of_entity, of_relation)
            counts.append(len(own))
            path.unlink()
    step(facts.rows)
    starts = np.concatenate([[0], np.cumsum(counts)])
    mapped: NDArray[np.int64] = np.memmap(distinct, np.int64, "r")
    return Buckets(mapped, starts, bounds, of_entity, of_relation)


def _bounds(facts: OnDisk) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The first head of each bucket, and the bucket of each head."""
    size = max(BUCKET, facts.rows // MOST_BUCKETS)
    bucket_of = (np.cumsum(facts.heads) - facts.heads) // size
    # A key must fit into 63 bits.
    widest = max(1, (2**63 - 1) // (facts.relations * facts.entities))
    bucket_of += np.arange(facts.entities) // widest
    begins = np.diff(bucket_of, prepend=-1) != 0  # they ascend
    return np.flatnonzero(begins), (np.cumsum(begins) - 1).astype(np.int32)
