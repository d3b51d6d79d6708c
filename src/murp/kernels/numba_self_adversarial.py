"""The compiled loop of :mod:`murp.kernels.self_adversarial`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.compiling import announce, kernel
from murp.kernels.intrinsics import take
from murp.kernels.numba_products import PANEL_BYTES
from murp.kernels.numba_weights import exponentials, largest_of, sigmoids_and_softplus, weighted_sigmoids

announce(__name__, "the training step")

SOME = 16  # rows that a thread takes at a time: a vector of float32, two of float64
A_SCORE = 16  # operations


def loss(scores: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The mean loss of contiguous scores (B, 1 + k), and its gradient."""
    size, width = scores.shape
    lanes = PANEL_BYTES // scores.element_size()
    gradient, of_rows = torch.empty_like(scores), scores.new_empty(size)
    kind = gradient.numpy().dtype
    room = np.empty((threads.count(), 2, -(-max(width - 1, SOME) // lanes) * lanes), kind)
    zeros = np.zeros(room.shape[2], kind)
    given = (scores.numpy(), kind.type(temperature), room, zeros, of_rows.numpy(), gradient.numpy())
    threads.share(_rows, *given, work=A_SCORE * scores.numel())
    return of_rows.sum() / (2 * size), gradient


@kernel
def _rows(counters: Any, scores: Any, alpha: Any, room: Any, zeros: Any, of_rows: Any, gradient: Any) -> None:
    """Take some rows until none is left; counters[0] is the next, counters[1] the next thread's room."""
    thread = take(counters, 1, 1)
    if thread >= len(room):  # more threads than when it was made: the others do the work
        return
    own, weights = room[thread, 0], room[thread, 1]
    zero, nothing = own.dtype.type(0), own.dtype.type(-np.inf)
    size, width = scores.shape
    twice = own.dtype.type(2 * size)
    while True:
        start = take(counters, 0, SOME)
        if start >= size:
            return
        for b in range(start, min(start + SOME, size)):
            if width == 1:  # no negatives
                of_rows[b] = zero
                continue
            for k in range(width - 1):
                own[k] = scores[b, 1 + k]
                weights[k] = alpha * scores[b, 1 + k]
            own[width - 1 :] = nothing  # no candidates: their weight and their sigmoid are 0
            weights[width - 1 :] = nothing
            total = exponentials(weights, zeros, -largest_of(weights, zeros, zero)[0])[0]
            of_rows[b] = weighted_sigmoids(own, weights, zero)[0] / total
            for k in range(width - 1):
                gradient[b, 1 + k] = own[k] / (total * twice)
        some = min(SOME, size - start)
        true = own[:SOME]
        true[:] = nothing
        for b in range(some):
            true[b] = -scores[start + b, 0]
        of_rows[start] += sigmoids_and_softplus(true, zeros, zero)[1]  # only the sum of all rows matters
        for b in range(some):
            gradient[start + b, 0] = -true[b] / twice
