"""The best objects of each query on the CPU in compiled loops, by the scores that evaluation ranks.

Threads take queries one by one: a query's row of inner products becomes scores where they lie, what is to be left
out becomes -∞, and one pass keeps the k best. Blocks without a score above the worst of those are passed over by
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
from murp.evaluation.numba_ranks import OPERATIONS, ball_scores, flat_scores
from murp.kernels.elementary import FORMATS
from murp.kernels.intrinsics import take

announce(__name__, "the search for the best answers")

_BLOCK = 64


@dataclass(frozen=True)
class Top:
    """A kernel of :mod:`murp.evaluation.fused` whose answer is (B, k, 2), float64: entity and score, best first.

    It makes nothing of the target. A place that no candidate is left for holds the entity -1 with the score -∞; the
    entities of a query with a NaN score are all -2.
    """

    k: int

    def ball(
        self,
        xv: Tensor,
        vr: Tensor,
        group: Tensor,
        of_query: Tensor,
        entities: Tensor,
        c: float,
        queries: Tensor,
        objects: Tensor,
    ) -> Tensor:
        """See :meth:`murp.evaluation.fused.Kernel.ball`."""
        best = torch.full((len(xv), self.k, 2), torch.nan, dtype=torch.float64)
        arrays = (tensor.numpy() for tensor in (xv, vr, group, of_query, entities, queries, objects, best))
        threads.share(_ball, *arrays, 1 / c, FORMATS[xv.numpy().dtype], work=OPERATIONS * xv.numel())
        return best

    def flat(self, yv: Tensor, yy: Tensor, entities: Tensor, queries: Tensor, objects: Tensor) -> Tensor:
        """See :meth:`murp.evaluation.fused.Kernel.flat`."""
        best = torch.full((len(yv), self.k, 2), torch.nan, dtype=torch.float64)
        arrays = (tensor.numpy() for tensor in (yv, yy, entities, queries, objects, best))
        threads.share(_flat, *arrays, work=OPERATIONS * yv.numel())
        return best


@allocating_kernel
def _ball(
    counters: Any, xv: Any, vr: Any, group: Any, of_query: Any, entities: Any, queries: Any, objects: Any, best: Any,
    per_c: float, form: Any,
) -> None:  # fmt: skip
    while True:
        i = take(counters, 0, 1)
        if i >= xv.shape[0]:
            return
        ball_scores(xv[i], vr[group[i]], of_query[i], entities, per_c, form)
        keep_best(xv[i], queries[:, i], objects, best[i])


@kernel
def _flat(counters: Any, yv: Any, yy: Any, entities: Any, queries: Any, objects: Any, best: Any) -> None:
    while True:
        i = take(counters, 0, 1)
        if i >= yv.shape[0]:
            return
        flat_scores(yv[i], yy[i], entities)
        keep_best(yv[i], queries[:, i], objects, best[i])


@kernel
def keep_best(scores: Any, query: Any, objects: Any, best: Any) -> None:
    """The best of ``scores`` (N) into ``best`` (k, 2), sorted; of equal ones the first of them."""
    unordered = 0
    for j in range(len(scores)):
        unordered += scores[j] != scores[j]
    nothing = scores.dtype.type(-np.inf)
    for position in range(query[2], query[3]):
        scores[objects[position]] = nothing
    if query[1] >= 0:
        scores[query[1]] = nothing
    k = len(best)
    for place in range(k):
        best[place, 0], best[place, 1] = -1 if unordered == 0 else -2, -np.inf
    worst = nothing
    for start in range(0, len(scores), _BLOCK):
        block = scores[start : start + _BLOCK]
        above = 0
        for j in range(len(block)):
            above += block[j] > worst
        if above == 0 or unordered > 0:
            continue
        for j in range(len(block)):
            if block[j] > worst:
                place = k - 1
                while place > 0 and best[place - 1, 1] < block[j]:
                    best[place, 0], best[place, 1] = best[place - 1, 0], best[place - 1, 1]
                    place -= 1
                best[place, 0], best[place, 1] = start + j, block[j]
                worst = scores.dtype.type(best[k - 1, 1])
