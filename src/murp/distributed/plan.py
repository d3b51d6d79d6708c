"""Which rows each slice of a batch needs, and which rank has them.

A batch is cut into slices, always at the same places, and the slices are divided among the ranks. The result of a slice
depends only on the slice. So the result is the same, bit for bit, on any number of ranks.

Before a group of steps, every rank tells the others which of their rows its slices will need: each row once for each
slice and step, however often it occurs there.

If the step before does not change a row, the row can be sent early, while that step computes. Only the owner of the row
knows this, since it knows which rows all slices need; it tells the other ranks.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from murp.distributed.ranks import Ranks
from murp.distributed.shares import Share
from murp.negatives import Drawn

MARKED = 8  # numbers there may be for each that is given, to be marked in a list
SPARSE = 4  # entities there must be for each that a batch names: where there are fewer, most rows move in every step
NARROW = 2**31  # what is below travels as 32 bits
SUBJECT, OBJECT, ROLES = 1, 2, 4  # a row that is asked for is sent as its number × ROLES + what it is read as


@dataclass
class Slice:
    """A part of a batch, with its rows numbered 0 … in the order of memory."""

    number: int
    weight: float  # its share of the batch
    positives: Tensor  # (b, 3)
    drawn: Drawn
    relations: Tensor  # (r): which relations it reads
    asked: list[int]  # of each rank: how many rows


@dataclass
class Message:
    """Rows of entities that are sent together."""

    rows: Tensor  # (n): rows of this rank that are sent, rank after rank
    outgoing: list[int]  # how many of them go to each rank
    incoming: list[int]  # how many come from each
    place: Tensor | None  # (m): where among all rows that its slices read those that come belong; None: these are all


@dataclass
class Step:
    """The work of one rank in a step: its slices, and its own rows that any slice needs."""

    own: list[Slice]
    counts: list[int]  # (slices): how many of its rows each slice reads; 0 where the batch is too small for so many
    rows: Tensor  # (m): its rows that are read, each once
    place: Tensor  # (n): where in ``rows`` is what the slices read, slice after slice
    roles: Tensor  # (m): what they are read as
    relations: Tensor  # (l): which relations are read, slice after slice
    relation_counts: list[int]
    slices_of: list[int]  # how many slices each rank has
    late: Message  # rows that are sent when the step before is done
    early: Message | None = None  # those that the step before does not move


def by_rank(numbers: list[int], slices_of: list[int]) -> list[int]:
    """Sums over the slices of each rank of ``numbers``, one for each slice that is not empty."""
    found, begin = [], 0
    for count in slices_of:
        found.append(sum(numbers[begin : begin + count]))
        begin += count
    return found


def distinct(numbers: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The distinct ``numbers`` (n), all below ``most``, sorted, and the position of each number among them (n).

    The same as torch.unique, which sorts and takes as long as a step. If ``most`` is not much larger than n, the
    numbers are marked in a list instead.
    """
    if most > MARKED * len(numbers):
        rows, where = torch.unique(numbers, return_inverse=True)
        return rows, where
    marks = torch.zeros(most, dtype=torch.bool, device=numbers.device).index_fill_(0, numbers, True)
    found = marks.nonzero().squeeze(1)
    place = torch.empty(most, dtype=numbers.dtype, device=numbers.device)
    place[found] = torch.arange(len(found), device=numbers.device)
    return found, place.index_select(0, numbers)


def cut(length: int, slices: int) -> list[slice]:
    """The places where a batch is cut."""
    places = [length * i // slices for i in range(slices + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(places)]


def own_slices(slices: int, rank: int, size: int) -> range:
    """Which slices a rank computes."""
    return range(slices * rank // size, slices * (rank + 1) // size)


def own_part(length: int, slices: int, rank: int, size: int) -> slice:
    """The triples of a batch that belong to these slices."""
    own, places = own_slices(slices, rank, size), cut(length, slices)
    return slice(places[own[0]].start, places[own[-1]].stop) if own else slice(0, 0)


def plan(
    ranks: Ranks, share: Share, slices: int, batch: int, positives: Tensor, drawn: Drawn, every_relation: int | None
) -> list[Step]:
    """The steps on positives (S, b, 3) and the negatives (S, …) of this rank's part of each batch of ``batch`` triples.

    ``every_relation``: the number of relations, if each slice needs all of them.
    """
    places = cut(batch, slices)
    mine = [i for i in own_slices(slices, ranks.rank, ranks.size) if places[i].start < places[i].stop]
    first = own_part(batch, slices, ranks.rank, ranks.size).start
    starts = share.starts().to(positives.device)
    own: list[list[Slice]] = []
    entities: list[list[list[Tensor]]] = []  # step, slice, rank
    for step in range(len(positives)):
        found = [
            _slice(step, i, places[i], first, batch, positives, drawn, every_relation, starts, share.rows) for i in mine
        ]
        own.append([one for one, _ in found])
        entities.append([asked for _, asked in found])
    narrow = ROLES * share.length < NARROW and (every_relation or 0) < NARROW
    asked = _told(ranks, slices, places, own, entities, positives.device, torch.int32 if narrow else torch.int64)
    busy = [
        sum(places[i].start < places[i].stop for i in own_slices(slices, rank, ranks.size))
        for rank in range(ranks.size)
    ]
    steps = [_step(own[step], *asked[step], busy, len(share)) for step in range(len(positives))]
    if ranks.size > 1 and share.rows >= SPARSE * _named(batch, drawn):
        _hasten(ranks, steps)
    return steps


def _named(batch: int, drawn: Drawn) -> int:
    """How many entities a batch names, with repetitions."""
    each = drawn.objects.shape[-1] * (1 if drawn.subjects is None else 2)
    return 2 * batch + each * (1 if drawn.objects.dim() == 2 else batch)


def _slice(
    step: int,
    number: int,
    place: slice,
    first: int,
    batch: int,
    positives: Tensor,
    drawn: Drawn,
    every: int | None,
    starts: Tensor,
    most: int,
) -> tuple[Slice, list[Tensor]]:
    """One slice, and the rows that it needs from each rank. ``positives`` and ``drawn`` begin at the ``first`` triple
    of a batch."""
    among = slice(place.start - first, place.stop - first)
    subjects, relations, objects = positives[step, among].unbind(1)
    shared = drawn.objects.dim() == 2  # (S, k): by the whole batch
    false = drawn.objects[step] if shared else drawn.objects[step, among]
    false_subjects = None if drawn.subjects is None else drawn.subjects[step, among]
    as_subject = [subjects] if false_subjects is None else [subjects, false_subjects.flatten()]
    as_object = [objects, false.flatten()]
    rows, where = distinct(torch.cat([*as_subject, *as_object]), most)
    count = sum(map(len, as_subject))
    roles = torch.zeros_like(rows).index_fill_(0, where[:count], SUBJECT)
    roles += torch.zeros_like(rows).index_fill_(0, where[count:], OBJECT)
    parts = torch.split(where, [len(part) for part in (*as_subject, *as_object)])
    of_subjects, of_objects = parts[0], parts[-2]
    if every is None:
        listed, of_relations = torch.unique(relations, return_inverse=True)
    else:
        listed, of_relations = torch.arange(every, device=rows.device), relations
    numbered = Drawn(parts[-1].view(false.shape), None if false_subjects is None else parts[1].view(false.shape))
    bounds = torch.searchsorted(rows, starts)
    sizes = bounds.diff().tolist()
    offsets = starts[:-1].repeat_interleave(bounds.diff())
    asked = list(torch.split((rows - offsets) * ROLES + roles, sizes))
    compact = torch.stack([of_subjects, of_relations, of_objects], 1)
    share = (place.stop - place.start) / batch
    return Slice(number, share, compact, numbered, listed, sizes), asked


def _told(
    ranks: Ranks,
    slices: int,
    places: Sequence[slice],
    own: list[list[Slice]],
    entities: list[list[list[Tensor]]],
    device: torch.device,
    dtype: torch.dtype,
) -> list[tuple[list[Tensor], list[Tensor]]]:
    """For each step and each non-empty slice: the rows of this rank that it needs, and its relations; all ranks
    exchange theirs.

    The first message has the counts, by step and slice; the second has the numbers.
    """
    steps, size = len(own), ranks.size
    theirs = [[i for i in own_slices(slices, rank, size) if places[i].start < places[i].stop] for rank in range(size)]
    counts = [
        [n for step in range(steps) for one in own[step] for n in (one.asked[to], len(one.relations))]
        for to in range(size)
    ]
    sent = torch.tensor([n for to in counts for n in to], dtype=torch.int64, device=device)
    expected = [2 * steps * len(theirs[rank]) for rank in range(size)]
    told = ranks.exchange(sent, [len(to) for to in counts], expected).tolist()
    messages, incoming, begin = [], [], 0
    for to in range(size):
        for step in range(steps):
            for one, asked in zip(own[step], entities[step], strict=True):
                messages += [asked[to], one.relations]
    for rank in range(size):
        incoming.append(told[begin : begin + expected[rank]])
        begin += expected[rank]
    outgoing = [sum(to) for to in counts]
    joined = torch.cat([torch.zeros(0, dtype=torch.int64, device=device), *messages]).to(dtype)
    numbers = ranks.exchange(joined, outgoing, [sum(lengths) for lengths in incoming]).long()
    parts = torch.split(numbers, [n for lengths in incoming for n in lengths])
    found: list[tuple[list[Tensor], list[Tensor]]] = [([], []) for _ in range(steps)]
    place = 0
    for rank in range(size):
        for step in range(steps):
            for _ in theirs[rank]:
                found[step][0].append(parts[place])
                found[step][1].append(parts[place + 1])
                place += 2
    return found


def _step(own: list[Slice], entities: list[Tensor], relations: list[Tensor], slices_of: list[int], most: int) -> Step:
    asked = torch.cat(entities)
    read, roles = asked // ROLES, asked % ROLES
    rows, place = distinct(read, most)
    read_as = torch.zeros_like(rows)
    for role in (SUBJECT, OBJECT):
        read_as += torch.zeros_like(rows).index_fill_(0, place[(roles & role) > 0], role)
    counts = [len(part) for part in entities]
    incoming = [sum(one.asked[rank] for one in own) for rank in range(len(slices_of))]
    return Step(
        own, counts, rows, place, read_as, torch.cat(relations), [len(part) for part in relations], slices_of,
        Message(read, by_rank(counts, slices_of), incoming, None),
    )  # fmt: skip


def _hasten(ranks: Ranks, steps: list[Step]) -> None:
    """Mark rows that can be sent early, for every step but the first; one message says which."""
    if len(steps) < 2:
        return
    later = steps[1:]
    late = [_among(step.rows, before.rows)[step.place] for before, step in itertools.pairwise(steps)]
    parts = [torch.split(flags, step.late.outgoing) for flags, step in zip(late, later, strict=True)]
    told = [part[rank] for rank in range(ranks.size) for part in parts]
    expected = [step.late.incoming[rank] for rank in range(ranks.size) for step in later]
    outgoing, incoming = (
        [sum(counts[i : i + len(later)]) for i in range(0, len(counts), len(later))]
        for counts in (list(map(len, told)), expected)
    )
    heard = torch.split(ranks.exchange(torch.cat(told).to(torch.uint8), outgoing, incoming).bool(), expected)
    sums = torch.stack([flags.sum() for flags in (*told, *heard)]).tolist()  # on a GPU the one number waited for
    for number, step in enumerate(later):
        flags = torch.cat(heard[number :: len(later)])
        out, into = sums[: len(told)][number :: len(later)], sums[len(told) :][number :: len(later)]
        whole = step.late
        step.late = Message(whole.rows[late[number]], out, into, flags.nonzero().squeeze(1))
        out, into = (
            [a - b for a, b in zip(*pair, strict=True)] for pair in ((whole.outgoing, out), (whole.incoming, into))
        )
        step.early = Message(whole.rows[~late[number]], out, into, (~flags).nonzero().squeeze(1))


def _among(numbers: Tensor, others: Tensor) -> Tensor:
    """Whether each of ``numbers`` is one of ``others``, which are in their order."""
    if not len(others):
        return torch.zeros_like(numbers, dtype=torch.bool)
    return others[torch.searchsorted(others, numbers).clamp(max=len(others) - 1)] == numbers
