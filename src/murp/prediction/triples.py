"""Triples as Python has them, in numbers: a list, an array, a data frame, or a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from murp.errors import DataError
from murp.graph import Indices, KnowledgeGraph
from murp.graph.names.lookup import Numbers
from murp.prediction.queries import read_triples

COLUMNS = ("head", "relation", "tail")
_THREE = "head, relation and tail"


def given_triples(triples: Any, graph: KnowledgeGraph) -> Indices:
    """Rows (n, 3) of a list of (head, relation, tail), an array of such rows, a data frame, or a file.

    A data frame has columns of these names, or three columns in this order.
    """
    if isinstance(triples, str | os.PathLike):
        return np.concatenate(list(read_triples(Path(triples), graph)))
    rows = text_triples(triples)
    if not rows:
        return np.zeros((0, 3), np.int64)
    heads, relations, tails = zip(*rows, strict=True)
    entities = Numbers(graph.entities)
    columns = ((entities, heads), (Numbers(graph.relations), relations), (entities, tails))
    return np.stack([of.find(texts, lambda row: f"triple {row + 1}") for of, texts in columns], axis=1)


def text_triples(triples: Any) -> list[tuple[str, str, str]]:
    """The same as texts, but for files."""
    if hasattr(triples, "columns"):
        names = list(triples.columns)
        wanted = list(COLUMNS) if set(COLUMNS) <= set(names) else names
        if len(wanted) != len(COLUMNS):
            found = ", ".join(map(str, names))
            raise DataError(f"the data frame has the columns {found}: name three of them {_THREE}.")
        triples = zip(*(triples[name] for name in wanted), strict=True)
    return [_triple(number, row) for number, row in enumerate(triples, start=1)]


def _triple(number: int, row: Any) -> tuple[str, str, str]:
    """Three texts; a whole number is the id that its digits are."""
    if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(COLUMNS):
        raise DataError(f"triple {number} is {row!r}: a triple is {_THREE}, three ids or names.")
    texts = [str(v) if isinstance(v, int | np.integer) and not isinstance(v, bool) else v for v in row]
    for role, text in zip(COLUMNS, texts, strict=True):
        if not isinstance(text, str):
            raise DataError(f"triple {number}: the {role} is {text!r}; ids are texts or whole numbers.")
    head, relation, tail = texts
    return head, relation, tail
