"""The best objects of each query on the CPU in compiled loops, by the scores that evaluation ranks.

Threads take blocks of queries, which meet all objects tile by tile: what is to be left out becomes -∞, and one pass
keeps the k best. Blocks without a score above the worst of those are passed over by
comparisons that are vector instructions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import allocating_kernel, announce, kernel
from murp.evaluation.fused import BallTerms, FlatTerms
from murp.evaluation.numba_ranks import QUERIES, TILE_PANELS, Asked, block_scores
from murp.kernels.intrinsics import take

announce(__name__, "the search for the best answers")

_BLOCK = 64


@dataclass(frozen=True)
class Top:
    """A kernel of :mod:`murp.evaluation.fused` whose answer is (B, k, 2), float64: entity and score, best first.

    It makes nothing of the target. A place that no candidate is left for holds the entity -1 with the score -∞; the
    entities of a query with a NaN score are all -2. Where objects come in parts, ``first`` is the number of the first
    one, ``best`` (B, k, 2) what the parts before it gave, and ``positions`` (B) how far they are in the known objects;
    both are brought up to date. What the loop did not come to is NaN.
    """

    k: int
    first: int = 0
    best: Any = None
    positions: Any = None

    def ball(self, terms: BallTerms, queries: Tensor, objects: Tensor) -> Tensor:
        """See :class:`murp.evaluation.fused.Kernel`."""
        return self._best_of(Asked.on_ball(terms), queries, objects)

    def flat(self, terms: FlatTerms, queries: Tensor, objects: Tensor) -> Tensor:
        """See :class:`murp.evaluation.fused.Kernel`."""
        return self._best_of(Asked.in_the_plane(terms), queries, objects)

    def _best_of(self, asked: Asked, queries: Tensor, objects: Tensor) -> Tensor:
        best, positions = self.best, self.positions
        if best is None:
            best = np.full((len(asked.points), self.k, 2), np.nan)
            positions = queries[2].numpy().copy()
        done = np.zeros(len(best), np.bool_)
        arguments = queries.numpy(), objects.numpy(), best, positions, self.first, done
        threads.share(_best, asked, *arguments, work=asked.work())
        best[~done] = np.nan
        return torch.from_numpy(best)


@allocating_kernel
def _best(
    counters: Any, asked: Any, queries: Any, objects: Any, best: Any, positions: Any, begin: int, done: Any
) -> None:
    """Take blocks of queries until none is left, and keep the best objects of each; ``begin`` is the first object."""
    count, width = asked.entities.shape[1], asked.panels.shape[2]
    tile = TILE_PANELS * width
    found, scratch = np.empty((QUERIES, tile), asked.points.dtype), np.empty((3, tile), asked.points.dtype)
    bits = scratch.view(asked.form.dtype)
    while True:
        first = take(counters, 0, QUERIES)
        if first >= len(best):
            return
        last = min(first + QUERIES, len(best))
        for q in range(first, last):
            if begin == 0:
                clear(best[q])
        for panel in range(0, len(asked.panels), TILE_PANELS):
            start = panel * width
            stop = min(start + tile, count)
            block_scores(asked, first, last, panel, min(panel + TILE_PANELS, len(asked.panels)), found, scratch, bits)
            for q in range(last - first):
                row, query, place = found[q, : stop - start], queries[:, first + q], first + q
                positions[place] = keep_best(row, begin + start, query, objects, positions[place], best[place])
        for q in range(first, last):
            done[q] = True


@kernel
def clear(best: Any) -> None:
    """Nothing is kept yet."""
    for place in range(len(best)):
        best[place, 0], best[place, 1] = -1, -np.inf


@kernel
def keep_best(scores: Any, start: int, query: Any, objects: Any, position: int, best: Any) -> int:
    """The best of the scores of the objects from ``start`` on into ``best`` (k, 2), sorted; of equal ones the first.

    ``position``: the first of the known objects that was not left out yet; what is returned is that for the next tile.
    """
    unordered = 0
    for j in range(len(scores)):
        unordered += scores[j] != scores[j]
    nothing = scores.dtype.type(-np.inf)
    while position < query[3] and objects[position] < start + len(scores):
        scores[objects[position] - start] = nothing
        position += 1
    if start <= query[1] < start + len(scores):
        scores[query[1] - start] = nothing
    k = len(best)
    if unordered > 0 or best[0, 0] == -2:
        for place in range(k):
            best[place, 0], best[place, 1] = -2, -np.inf
        return position
    worst = scores.dtype.type(best[k - 1, 1])
    for begin in range(0, len(scores), _BLOCK):
        block = scores[begin : begin + _BLOCK]
        above = 0
        for j in range(len(block)):
            above += block[j] > worst
        if above == 0:
            continue
        for j in range(len(block)):
            if block[j] > worst:
                place = k - 1
                while place > 0 and best[place - 1, 1] < block[j]:
                    best[place, 0], best[place, 1] = best[place - 1, 0], best[place - 1, 1]
                    place -= 1
                best[place, 0], best[place, 1] = start + begin + j, block[j]
                worst = scores.dtype.type(best[k - 1, 1])
    return position
