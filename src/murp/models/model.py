"""What a model must offer: tables of parameters, each in its geometry, and a score over their rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from murp import threads
from murp.config import Config
from murp.geometry import Geometry
from murp.kernels.products import inner_products, squared_norms
from murp.models.blocks import QUERIES, block_length, filled

Role = Literal["subject", "relation", "object"]
Rows = dict[str, Tensor]

CELLS_A_THREAD = 2**18  # scores that are worth another thread


@dataclass(frozen=True)
class Table:
    """One parameter table: a row of ``shape`` for every entity or every relation.

    ``geometry`` is the space each row lives in; the optimiser steps along its geodesics. ``roles``
    say in which positions of a triple the row is read: an entity's point is read as subject and as
    object, its subject bias as subject only.
    """

    name: str
    of: Literal["entity", "relation"]
    shape: tuple[int, ...]
    geometry: Geometry
    initial: Literal["zero", "normal", "uniform"]
    roles: tuple[Role, ...]

    def draw(self, rows: int, dtype: torch.dtype, generator: torch.Generator, scale: float) -> Tensor:
        """Initial values: 0, normal with standard deviation ``scale``, or uniform in (-1, 1); shape (rows, *shape)."""
        values = torch.zeros(rows, *self.shape, dtype=dtype)
        if self.initial == "normal":
            values.normal_(0.0, scale, generator=generator)
        elif self.initial == "uniform":
            values.uniform_(-1.0, 1.0, generator=generator)
        return values


class Model(ABC):
    """A score φ(s, r, o) over parameter tables.

    A model defines ``tables`` and :meth:`score_rows`; scoring triples, scoring all entities,
    training, checkpoints and evaluation follow from these two. Relations are numbered 0 … 2R-1,
    reciprocals included, so that heads are scored as objects of the reciprocal relation.
    """

    tables: tuple[Table, ...]

    def __init__(self, num_entities: int, num_relations: int, *, dtype: torch.dtype = torch.float32) -> None:
        self.num_entities = num_entities
        self.num_relations = num_relations
        self.dtype = dtype
        self.parameters: dict[str, Tensor] = {}

    @abstractmethod
    def score_rows(self, subject: Rows, relation: Rows, objects: Rows) -> Tensor:
        """Scores of B queries against their candidates.

        ``subject`` and ``relation`` hold rows of shape (B, …). ``objects`` holds either K candidates
        for each query, rows (B, K, …), giving scores (B, K); or N candidates that all queries share,
        rows (N, …), giving (B, N) through matrix products, never through a B × N × d tensor.
        """

    def initialise(self, seed: int, scale: float = Config.initial_scale) -> Model:
        """Draw every table's initial values; the same seed gives the same values on every device.

        ``scale``: the standard deviation of entities and translations in each coordinate.
        """
        generator = torch.Generator().manual_seed(seed)
        self.parameters = {t.name: t.draw(self.rows_of(t), self.dtype, generator, scale) for t in self.tables}
        return self

    def rows_of(self, table: Table) -> int:
        """How many rows a table has."""
        return self.num_entities if table.of == "entity" else self.num_relations

    def broken(self) -> list[str]:
        """Which tables have a row that is no point of its space: NaN, infinite or outside the ball; with the row."""
        found = []
        for table in self.tables:
            values = self.parameters[table.name]
            good = table.geometry.contains(values if table.shape else values[:, None])
            if not bool(good.all()):
                found.append(f"{table.name} (row {int((~good).nonzero()[0])})")
        return found

    def to(self, device: torch.device | str) -> Model:
        """Move every table to ``device``."""
        self.parameters = {name: values.to(device) for name, values in self.parameters.items()}
        return self

    @property
    def device(self) -> torch.device:
        """Where the tables are."""
        return next(iter(self.parameters.values())).device

    def rows(self, role: Role, indices: Tensor | None = None) -> Rows:
        """The rows read in ``role``, at ``indices`` of any shape; the whole tables where that is None."""
        tables = {t.name: self.parameters[t.name] for t in self.tables if role in t.roles}
        if indices is None:
            return tables
        # index_select copies rows about three times as fast as values[indices] on the CPU.
        flat = indices.flatten()
        return {
            name: values.index_select(0, flat).view(*indices.shape, *values.shape[1:])
            for name, values in tables.items()
        }

    @torch.no_grad()
    def score(self, subjects: Tensor, relations: Tensor, objects: Tensor) -> Tensor:
        """φ(s, r, o) for each triple; three index tensors of shape (B,) → (B,)."""
        candidates = self.rows("object", objects[:, None])
        return self.score_rows(self.rows("subject", subjects), self.rows("relation", relations), candidates)[:, 0]

    @torch.no_grad()
    def score_objects(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """φ(s, r, ·) against every entity; two index tensors of shape (B,) → (B, N).

        A score depends on its query and its object alone, so that equal entities tie: see :mod:`murp.models.blocks`.
        """
        if self.device.type != "cpu":
            query = self.rows("subject", subjects), self.rows("relation", relations)
            return self.score_rows(*query, self.rows("object"))
        scores = torch.empty(len(subjects), self.num_entities, dtype=self.dtype)
        length = block_length(self.num_entities)
        blocks = iter([(b, n) for b in range(0, len(subjects), QUERIES) for n in range(0, self.num_entities, length)])

        @torch.no_grad()
        def score_blocks() -> None:
            for b, n in blocks:
                asked = scores[b : b + QUERIES]
                query = self.query_rows(subjects[b : b + QUERIES], relations[b : b + QUERIES])
                found = self.score_rows(*query, self._objects(n, length))
                asked[:, n : n + length] = found[: len(asked), : self.num_entities - n]

        threads.share_torch(score_blocks, min(threads.count(), 1 + scores.numel() // CELLS_A_THREAD))
        return scores

    def query_rows(self, subjects: Tensor, relations: Tensor) -> tuple[Rows, Rows]:
        """The rows of subjects and relations of at most ``QUERIES`` queries; beyond the last that one is repeated."""
        return self.rows("subject", filled(subjects, QUERIES)), self.rows("relation", filled(relations, QUERIES))

    def _objects(self, start: int, length: int) -> Rows:
        """The rows of ``length`` objects from ``start`` on; beyond the last that one is repeated."""
        if start + length <= self.num_entities:
            return {name: values[start : start + length] for name, values in self.rows("object").items()}
        return self.rows("object", filled(torch.arange(start, self.num_entities), length))


def inner(x: Tensor, candidates: Tensor) -> Tensor:
    """⟨x_b, v⟩ for the candidates of each query: (B, d) with (B, K, d) → (B, K), with (N, d) → (B, N)."""
    if candidates.dim() == 2:
        differentiated = torch.is_grad_enabled() and (x.requires_grad or candidates.requires_grad)
        return x @ candidates.T if differentiated else inner_products(x, candidates)
    return torch.bmm(candidates, x.unsqueeze(-1)).squeeze(-1)


def squared_norm(x: Tensor) -> Tensor:
    """|x|² along the last axis."""
    if x.dim() == 2 and not (torch.is_grad_enabled() and x.requires_grad):
        return squared_norms(x)
    return (x * x).sum(-1)
