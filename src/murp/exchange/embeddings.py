"""The rows of one table of a model with the names they belong to: as arrays, a data frame, or tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from murp.errors import ConfigError
from murp.exchange.coordinates import COORDINATES, Coordinates, converted, own_coordinates
from murp.graph import Vocabulary
from murp.rows import Tabular
from murp.runs import Run

RECIPROCAL = "_reciprocal"  # after the id of a relation: heads are predicted with its reciprocal


class Embeddings(Tabular):
    """Vectors (n, …), a row for each of ``ids``; ``names`` are readable names, ids if there are none.

    ``numpy.asarray`` gives the vectors. ``coordinates`` say which they are of a model's points.
    """

    def __init__(
        self, vectors: Tensor, ids: list[str], names: list[str], vocabulary: Vocabulary, coordinates: str
    ) -> None:
        self.tensor, self.ids, self.names = vectors, ids, names
        self.coordinates = coordinates
        self._vocabulary = vocabulary

    @property
    def vectors(self) -> NDArray[Any]:
        """(n, …)."""
        found: NDArray[Any] = self.tensor.numpy()
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.vectors, dtype=dtype) if copy else np.asarray(self.vectors, dtype=dtype)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        shape = " × ".join(map(str, self.tensor.shape))
        return f"Embeddings({shape}, {self.coordinates}, {self.tensor.dtype})"

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The row of one thing, by id or name."""
        row: NDArray[Any] = self.vectors[self._vocabulary.find(name)]
        return row

    def columns(self) -> dict[str, Any]:
        """The id, the name where they differ, and a column for each coordinate: x0, x1, …"""
        flat = self.vectors.reshape(len(self), -1)
        named = {"name": self.names} if self.names != self.ids else {}
        return {"id": self.ids, **named, **{f"x{i}": column for i, column in enumerate(flat.T)}}

    def to_tensor(self) -> Tensor:
        """A copy for PyTorch, (n, …), rows in the order of ``ids``."""
        return self.tensor.clone()

    def to_module(self, *, freeze: bool = True) -> torch.nn.Embedding:
        """The rows as ``torch.nn.Embedding``, flattened to vectors; ``freeze``: training leaves them as they are."""
        rows = self.to_tensor().reshape(len(self), -1)
        module = torch.nn.Embedding(rows.shape[0], rows.shape[1], _weight=rows)
        return module.requires_grad_(not freeze)


def embeddings(run: Run, table: str = "entity", coordinates: Coordinates | None = None) -> Embeddings:
    """A table of the run's model, on the CPU; relations' tables have a row for each reciprocal too.

    ``coordinates`` are those of the points of a ball, "poincare", "lorentz" or "tangent"; None: as they are held.
    """
    model, graph = run.model, run.graph
    kinds = {one.name: one.of for one in model.tables if one.of != "shared"}
    if table not in kinds:
        raise ConfigError(f"this model has no table {table!r}: choose one of {', '.join(kinds)}.")
    if coordinates is not None and coordinates not in COORDINATES:
        raise ConfigError(f"coordinates must be one of {', '.join(COORDINATES)}, not {coordinates!r}.")
    vectors = converted(model, coordinates)[table].contiguous()
    vocabulary = graph.entities if kinds[table] == "entity" else graph.relations
    ids: list[str] = vocabulary.ids.to_pylist()
    names = [vocabulary.name(i) for i in range(len(vocabulary))] if vocabulary.names is not None else ids
    if kinds[table] == "relation":
        ids, names = ([*own, *(name + RECIPROCAL for name in own)] for own in (ids, names))
    return Embeddings(vectors, ids, names, vocabulary, coordinates or own_coordinates(model))
