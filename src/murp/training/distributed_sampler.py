"""Which triples a step uses, where each of many ranks has a share of them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from murp.distributed.plan import own_part
from murp.distributed.ranks import Ranks
from murp.distributed.shares import Share
from murp.distributed.triples import dealt, share_of
from murp.engines import Chunk
from murp.graph import KnowledgeGraph
from murp.training.sampler import Sampler


class DistributedSampler(Sampler):
    """A :class:`Sampler` with the same batches and negatives, of which each rank has the part of its slices.

    Memory of one of W ranks, of N triples: 12 N/W bytes for its share of the graph, and 12 N/W for the triples of its
    slices, which are sent at the beginning of an epoch. The order of the whole epoch exists only then (4 N bytes).
    All ranks ask for the same chunks in the same order, since they exchange triples.
    """

    def __init__(
        self, graph: KnowledgeGraph, ranks: Ranks, slices: int, *, reciprocals: bool = True, **options: Any
    ) -> None:
        """``options``: those of :class:`Sampler`."""
        self.ranks, self.slices = ranks, slices
        self.share = Share((1 + reciprocals) * len(graph.train), ranks.rank, ranks.size)
        held = share_of(graph, self.share, reciprocals=reciprocals)
        super().__init__(held, graph.num_entities, **options)
        self.count = self.share.rows

    def _ordered(self, order: Tensor) -> Tensor:
        """The triples (n, 3) of this rank's slices, batch after batch."""
        return dealt(self.ranks, self.share, self.triples, order, self.batch_size, self.slices)

    def _chunk(self, order: Tensor, first: int, steps: int, size: int, seed: int) -> Chunk:
        full, own = self._part(self.batch_size), self._part(size)
        width = own.stop - own.start
        start = first * (full.stop - full.start)
        positives = order[start : start + steps * width].long().view(steps, width, 3)
        return Chunk(positives, self.num_entities, self.negatives, seed, whole=size, first=own.start)

    def _part(self, size: int) -> slice:
        return own_part(size, self.slices, self.ranks.rank, self.ranks.size)
