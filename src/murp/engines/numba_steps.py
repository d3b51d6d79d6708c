"""Training steps of MuRP and MuRE in compiled loops.

A step has three parts. *Positives*: each positive triple scores its candidates and writes down the coefficients of all
its gradients. *Chains*: every occurrence of an entity is linked to the one before it. *Rows*: each touched row sums its
chain and moves. Threads share positives and rows; the last to arrive makes the chains and moves the relations
(:mod:`murp.kernels.barrier`). The order of every sum is fixed by the batch, so the result does not depend on the number
of threads.
"""

from __future__ import annotations

from typing import Any

from murp.compiling import announce, kernel
from murp.engines.numba_math import link, prefetch_positive
from murp.engines.numba_mure import mure_positive, mure_relations, mure_rows
from murp.engines.numba_murp import murp_positive, murp_relations, murp_rows
from murp.kernels.barrier import FIRST, SECOND, SHARED, arrive, begin, release
from murp.kernels.intrinsics import read, take, write

announce(__name__, "the training step")

# What a thread takes at a time: little enough that none waits long for the last.
_POSITIVES, _ROWS = 4, 64


@kernel
def steps(
    counters: Any, thread: int, positives: Any, negatives: Any, tables: Any, numbers: Any, space: Any, total: Any
) -> None:
    """One thread's part of S steps; positives (S, B, 3), negatives (S, B, k); adds the mean losses to ``total`` (1).

    ``tables``: entity, stretch, translation, subject bias, object bias. ``numbers``: learning rate, c (0 for MuRE), the
    limit and the set-back radius of the ball, and the size below which ∂L/∂φ is lost. ``space``: see
    :class:`murp.engines.numba_engine.Space`.
    """
    begin(counters)
    size = positives.shape[1]
    entity, _, _, _, object_bias = tables
    ball = numbers[1] > 0
    for step in range(len(positives)):
        while True:
            first = take(counters, FIRST, _POSITIVES)
            if first >= size:
                break
            for i in range(first, min(first + _POSITIVES, size)):
                if i + _POSITIVES < size:
                    prefetch_positive(
                        entity, object_bias, positives[step, i + _POSITIVES], negatives[step, i + _POSITIVES]
                    )
                if ball:
                    murp_positive(i, thread, positives[step, i], negatives[step, i], tables, numbers, space, size)
                else:
                    mure_positive(i, thread, positives[step, i], negatives[step, i], tables, numbers, space, size)
        if arrive(counters):
            write(counters, SHARED, link(positives[step], negatives[step], space.head, space.following, space.rows))
            write(counters, SECOND, 0)
            release(counters)
        distinct = read(counters, SHARED)
        while True:
            first = take(counters, SECOND, _ROWS)
            if first >= distinct:
                break
            last = min(first + _ROWS, distinct)
            if ball:
                murp_rows(first, last, distinct, thread, tables, numbers, space, negatives.shape)
            else:
                mure_rows(first, last, distinct, thread, tables, numbers, space, negatives.shape)
        if arrive(counters):
            if ball:
                murp_relations(positives[step], tables, numbers, space)
            else:
                mure_relations(positives[step], tables, numbers, space)
            for i in range(size):
                total[0] += space.losses[i]
            write(counters, FIRST, 0)
            release(counters)
