"""The training triples of many ranks: each rank has a share of them and, once an epoch, gets those of its slices.

Every rank knows the order of the epoch. So it knows which of its triples each other rank needs, and from which rank its
own come: nothing is asked for, and 12 bytes are sent for each triple that another rank has.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from murp.distributed.plan import own_part
from murp.distributed.ranks import Ranks
from murp.distributed.shares import Share
from murp.graph import KnowledgeGraph, Triples

AT_ONCE = 2**22  # places of the order that are looked through, and their triples sent, at a time


def share_of(graph: KnowledgeGraph, share: Share, *, reciprocals: bool) -> Triples:
    """The triples of a ``share`` of the training facts, which ``reciprocals`` follow; a copy of no others."""
    facts, count = graph.train, len(graph.train)
    forth = facts[share.start : min(share.stop, count)]
    if not reciprocals:
        return forth.copy()
    turned = facts[max(share.start - count, 0) : max(share.stop - count, 0)]
    return np.concatenate([forth, graph.with_reciprocals(turned)[len(turned) :]])


def dealt(ranks: Ranks, share: Share, held: Tensor, order: Tensor, batch: int, slices: int) -> Tensor:
    """The triples (n, 3) of this rank's slices in an epoch, batch after batch; all ranks call it together.

    ``held`` (m, 3): the triples of its ``share``; ``order`` (N): the numbers of all triples as the epoch has them, in
    batches of ``batch``, the last one smaller.
    """
    full, rest = divmod(len(order), batch)
    steps = max(1, AT_ONCE // batch)
    groups = [(first, min(steps, full - first), batch) for first in range(0, full, steps)]
    groups += [(full, 1, rest)] if rest else []
    widths = [count * _width(own_part(size, slices, ranks.rank, ranks.size)) for _, count, size in groups]
    found = held.new_empty(sum(widths), 3)
    parts = torch.split(found, widths)
    for (first, count, size), part in zip(groups, parts, strict=True):
        places = order[first * batch : first * batch + count * size].view(count, size)
        _deal(ranks, share, held, places, slices, part)
    return found


def _deal(ranks: Ranks, share: Share, held: Tensor, order: Tensor, slices: int, found: Tensor) -> None:
    """Exchange the triples of some batches (S, B) of the order, and write this rank's into ``found``."""
    size = order.shape[1]
    parts = [own_part(size, slices, rank, ranks.size) for rank in range(ranks.size)]
    # A rank without slices ends at 0, which cummax puts where the one before it ends.
    ends = torch.tensor([part.stop for part in parts], device=order.device).cummax(0).values
    mine = ((order >= share.start) & (order < share.stop)).flatten().nonzero().squeeze(1)
    to, by_rank = torch.searchsorted(ends, mine % size, right=True).sort(stable=True)
    sent = held.index_select(0, order.flatten()[mine[by_rank]] - share.start)
    of, place = (order[:, parts[ranks.rank]].flatten() // share.length).sort(stable=True)
    counts = torch.stack([torch.bincount(numbers, minlength=ranks.size) for numbers in (to, of)])
    outgoing, incoming = (3 * counts).tolist()
    came = ranks.exchange(sent.flatten(), outgoing, incoming)
    found.index_copy_(0, place, came.view(-1, 3))


def _width(part: slice) -> int:
    return int(part.stop - part.start)
