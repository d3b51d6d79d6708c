"""Counting, for every node, the nodes that are nearer to it than its ancestors are, in compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from murp.compiling import allocating_kernel, announce
from murp.kernels.intrinsics import take

announce(__name__, "the reconstruction")

TILE = 512  # nodes whose coordinates stay in the first cache
GROUP = 32  # subjects that meet a tile one after the other


@allocating_kernel
def count(
    counters: Any, coordinates: Any, gaps: Any, ball: bool, subjects: Any, starts: Any, ancestors: Any, twice: Any
) -> None:
    """Into ``twice`` (pairs), all 0, twice the number of unrelated nodes nearer than the ancestor, and once of ties.

    ``coordinates`` (d, N); ``gaps`` (N) are 1 - |v|² on the ball. Compared are |u - v|²/(1 - |v|²) on the ball and
    ⟨u - v,u - v⟩ on the hyperboloid, which for one u rise with the distance. The ancestors of ``subjects[i]`` are
    ``ancestors[starts[i] : starts[i + 1]]``. All nodes
    are counted, and the node and its ancestors taken out again.
    """
    dim, nodes = coordinates.shape
    keys = np.zeros(TILE)
    bounds = np.zeros(len(ancestors))
    while True:
        first = take(counters, 0, GROUP)
        if first >= len(subjects):
            break
        last = min(first + GROUP, len(subjects))
        for i in range(first, last):
            u = subjects[i]
            for p in range(starts[i], starts[i + 1]):
                v = ancestors[p]
                key = 0.0
                for j in range(dim):
                    difference = coordinates[j, v] - coordinates[j, u]
                    key += difference * difference if ball or j > 0 else -(difference * difference)
                bounds[p] = key / gaps[v] if ball else key
        for start in range(0, nodes, TILE):
            size = min(TILE, nodes - start)
            for i in range(first, last):
                u = subjects[i]
                tile = keys[:size]
                for k in range(size):
                    tile[k] = 0.0
                for j in range(dim):
                    row, own = coordinates[j, start : start + size], coordinates[j, u]
                    if ball or j > 0:
                        for k in range(size):
                            difference = row[k] - own
                            tile[k] += difference * difference
                    else:
                        for k in range(size):
                            difference = row[k] - own
                            tile[k] -= difference * difference
                if ball:
                    gap = gaps[start : start + size]
                    for k in range(size):
                        tile[k] /= gap[k]
                for p in range(starts[i], starts[i + 1]):
                    bound, found = bounds[p], 0
                    for k in range(size):
                        found += (tile[k] < bound) + (tile[k] <= bound)
                    twice[p] += found
        for i in range(first, last):
            for p in range(starts[i], starts[i + 1]):
                bound = bounds[p]
                found = (bound > 0.0) + (bound >= 0.0)
                for q in range(starts[i], starts[i + 1]):
                    found += (bounds[q] < bound) + (bounds[q] <= bound)
                twice[p] -= found
