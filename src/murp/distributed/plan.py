"""Which rows each slice of a batch reads, and who has them.

A batch is cut into slices, always at the same places; ranks share the slices out. What a slice computes depends on
the slice alone. So the number of ranks changes who computes, not what: the bits are the same on any number of them.

Before some steps every rank tells the others which of their rows its slices are going to read: a row once for each
slice and step, however often it occurs there.
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

NARROW = 2**31  # what is below travels as 32 bits
SUBJECT, OBJECT, ROLES = 1, 2, 4  # a row that is asked for is sent as its number × ROLES + what it is read as


@dataclass
class Slice:
    """A part of a batch, with its rows numbered 0 … as they will lie in memory."""

    number: int
    weight: float  # its share of the batch
    positives: Tensor  # (b, 3)
    drawn: Drawn
    relations: Tensor  # (r): which relations it reads
    asked: list[int]  # of each rank: how many rows


@dataclass
class Step:
    """What one rank has to do in a step: its slices, and the rows of its own that all slices read."""

    own: list[Slice]
    wanted: Tensor  # (n): its rows, slice after slice
    counts: list[int]  # (slices): how many of them each slice reads; 0 where the batch is too small for so many slices
    rows: Tensor  # (m): the same, each once
    place: Tensor  # (n): where in ``rows``
    roles: Tensor  # (m): what they are read as
    relations: Tensor  # (l): which relations are read, slice after slice
    relation_counts: list[int]
    slices_of: list[int]  # how many slices each rank has


def cut(length: int, slices: int) -> list[slice]:
    """Where a batch is cut."""
    places = [length * i // slices for i in range(slices + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(places)]


def own_slices(slices: int, rank: int, size: int) -> range:
    """Which slices a rank computes."""
    return range(slices * rank // size, slices * (rank + 1) // size)


def plan(
    ranks: Ranks, share: Share, slices: int, positives: Tensor, drawn: Drawn, every_relation: int | None
) -> list[Step]:
    """The steps on positives (S, B, 3) and their negatives (S, …).

    ``every_relation``: how many there are, where each slice reads all of them.
    """
    places = cut(positives.shape[1], slices)
    mine = [i for i in own_slices(slices, ranks.rank, ranks.size) if places[i].start < places[i].stop]
    starts = share.starts().to(positives.device)
    own: list[list[Slice]] = []
    entities: list[list[list[Tensor]]] = []  # step, slice, rank
    for step in range(len(positives)):
        found = [_slice(step, i, places[i], positives, drawn, every_relation, starts) for i in mine]
        own.append([one for one, _ in found])
        entities.append([asked for _, asked in found])
    narrow = ROLES * share.length < NARROW and (every_relation or 0) < NARROW
    asked = _told(ranks, slices, places, own, entities, positives.device, torch.int32 if narrow else torch.int64)
    busy = [
        sum(places[i].start < places[i].stop for i in own_slices(slices, rank, ranks.size))
        for rank in range(ranks.size)
    ]
    return [_step(own[step], *asked[step], busy) for step in range(len(positives))]


def _slice(
    step: int, number: int, place: slice, positives: Tensor, drawn: Drawn, every: int | None, starts: Tensor
) -> tuple[Slice, list[Tensor]]:
    """One slice, and what it asks each rank for."""
    subjects, relations, objects = positives[step, place].unbind(1)
    shared = drawn.objects.dim() == 2  # (S, k): by the whole batch
    false = drawn.objects[step] if shared else drawn.objects[step, place]
    false_subjects = None if drawn.subjects is None else drawn.subjects[step, place]
    as_subject = [subjects] if false_subjects is None else [subjects, false_subjects.flatten()]
    as_object = [objects, false.flatten()]
    rows, where = torch.unique(torch.cat([*as_subject, *as_object]), return_inverse=True)
    count = sum(map(len, as_subject))
    roles = torch.zeros_like(rows)
    roles[where[:count]] = SUBJECT
    read = torch.zeros_like(rows, dtype=torch.bool)
    read[where[count:]] = True
    roles += OBJECT * read
    parts = where.split([len(part) for part in (*as_subject, *as_object)])
    of_subjects, of_objects = parts[0], parts[-2]
    if every is None:
        listed, of_relations = torch.unique(relations, return_inverse=True)
    else:
        listed, of_relations = torch.arange(every, device=rows.device), relations
    numbered = Drawn(parts[-1].view(false.shape), None if false_subjects is None else parts[1].view(false.shape))
    bounds = torch.searchsorted(rows, starts)
    sizes = bounds.diff().tolist()
    offsets = starts[:-1].repeat_interleave(bounds.diff())
    asked = list((((rows - offsets) * ROLES) + roles).split(sizes))
    compact = torch.stack([of_subjects, of_relations, of_objects], 1)
    share = (place.stop - place.start) / positives.shape[1]
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
    """Of each step, for each slice that is not empty: the rows it reads here, and the relations; all ranks tell theirs.

    A message has how many there are of each, step by step and slice by slice, and in a second one the numbers.
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


def _step(own: list[Slice], entities: list[Tensor], relations: list[Tensor], slices_of: list[int]) -> Step:
    asked = torch.cat(entities)
    wanted, roles = asked // ROLES, asked % ROLES
    rows, place = torch.unique(wanted, return_inverse=True)
    read_as = torch.zeros_like(rows)
    for role in (SUBJECT, OBJECT):
        read = torch.zeros_like(rows, dtype=torch.bool)
        read[place[(roles & role) > 0]] = True
        read_as += role * read
    return Step(
        own, wanted, [len(part) for part in entities], rows, place, read_as,
        torch.cat(relations), [len(part) for part in relations], slices_of,
    )  # fmt: skip
