"""Rows of small integers as single int64 numbers, so that sorting and set operations are vectorised."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from murp.graph.knowledge_graph import Triples

Keys = NDArray[np.int64]


def pack(columns: Sequence[NDArray[np.int32]], sizes: Sequence[int]) -> Keys:
    """One number a row, equal exactly where rows are equal, ordered as the rows are.

    Mixed radix: ((c₀ · n₁ + c₁) · n₂ + c₂ …) for columns c with values below ``sizes`` n, so the last
    column is ``key % sizes[-1]``. Where that would leave 63 bits the prefix is renumbered densely first, so
    only keys of one call may be compared.
    """
    keys: Keys = columns[0].astype(np.int64)
    bound = max(sizes[0], 1)
    for column, size in zip(columns[1:], sizes[1:], strict=True):
        if bound * size >= 2**63:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64).reshape(-1)
            bound = len(keys)
        keys = keys * max(size, 1) + column
        bound *= max(size, 1)
    return keys


def fact_keys(triples: Triples, entities: int, relations: int) -> Keys:
    """One number for each row of ``triples``: equal exactly where the facts are."""
    return pack((triples[:, 0], triples[:, 1], triples[:, 2]), (entities, relations, entities))
