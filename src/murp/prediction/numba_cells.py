"""Scores of the entities of some cells in compiled loops, for one question to the published MuRP or MuRE.

Entities lie packed cell by cell (:mod:`murp.kernels.numba_products`), each cell from the beginning of a panel on, so
that a cell is scored where it lies: nothing is gathered or copied but scores. The arithmetic is that of the exact
search.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from murp import threads
from murp.compiling import allocating_kernel, announce
from murp.evaluation.numba_ranks import OPERATIONS, ball_scores, flat_scores
from murp.kernels.elementary import FORMATS
from murp.kernels.intrinsics import take
from murp.kernels.numba_products import multiply

announce(__name__, "the search for approximate answers")


def cell_scores(points: Any, of_query: Any, per_c: float, panels: Any, numbers: Any, first: Any, rows: Any) -> Any:
    """Scores of all entities of some cells, one cell after the other, less the subject's bias.

    ``points``: x and r on the ball, y in the plane; ``of_query`` and ``numbers`` are ``of_query`` and
    ``entities`` of :class:`murp.evaluation.fused.BallTerms`, or ``yy`` and ``entities`` of ``FlatTerms``. A cell begins
    with the panel ``first`` and has so many ``rows``.
    """
    out = np.empty(int(rows.sum()), panels.dtype)
    offsets = np.cumsum(rows) - rows
    width = panels.shape[2]
    longest = int(-(-rows.max() // width) * width)
    arguments = points, of_query, per_c, FORMATS[panels.dtype], panels, numbers, first, rows, offsets, longest, out
    threads.share(_scores, *arguments, work=len(out) * (OPERATIONS + len(points) * panels.shape[1]))
    return out


@allocating_kernel
def _scores(
    counters: Any,
    points: Any,
    of_query: Any,
    per_c: float,
    form: Any,
    panels: Any,
    numbers: Any,
    first: Any,
    rows: Any,
    offsets: Any,
    longest: int,
    out: Any,
) -> None:
    """Take cells until none is left."""
    width = panels.shape[2]
    found = np.empty((2, longest), panels.dtype)
    while True:
        cell = take(counters, 0, 1)
        if cell >= len(rows):
            return
        panel, count = first[cell], rows[cell]
        multiply(points, 0, len(points), panels, panel, panel + (count + width - 1) // width, found)
        start = panel * width
        own, row = numbers[:, start : start + count], found[0, :count]
        if per_c > 0:
            ball_scores(row, found[1, :count], of_query, own, per_c, form)
        else:
            flat_scores(row, of_query[0], own[0], own[1])
        for j in range(count):
            out[offsets[cell] + j] = row[j]
