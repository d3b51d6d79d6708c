"""Filtered ranks of the published MuRP and MuRE in one pass over their inner products.

Against all entities v a query (s, r) needs one row of a matrix product, ⟨x,v⟩ with x the moved subject, and ⟨v,r⟩,
which queries of the same relation share. A kernel turns such rows into ranks without storing another
batch × entities tensor: :mod:`murp.evaluation.numba_ranks` on CPUs, :mod:`murp.evaluation.triton_ranks` on CUDA.
The generic path in :mod:`murp.evaluation.ranks` is the definition they are tested against.
"""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import Tensor

from murp.geometry.ball_distance import query_coefficients
from murp.graph import Indices, KnownFacts
from murp.kernels.products import inner_products, row_products, squared_norms
from murp.models import MultiRelational
from murp.models.blocks import QUERIES

# Two matrices of batch × entities: ⟨x,v⟩, and ⟨v,r⟩ where no two queries share their relation.
MATRICES = 2
# A CPU gains nothing from larger products, and it pays for each new page of them; a product of few rows is slow.
CPU_CELLS = 2**24
CPU_ROWS = 64


class Products:
    """⟨x,v⟩ of B points x with all N entities v, for a kernel to ask for in the form it likes."""

    def __init__(self, points: Tensor, rows: Rows) -> None:
        self.points = points
        self._rows = rows

    def matrix(self) -> Tensor:
        """(B, N); may be overwritten."""
        rows = self._rows
        if rows.room is None:
            rows.room = rows.entity.new_empty(rows.size, rows.model.num_entities)
        return inner_products(self.points, rows.entity, rows.room)

    def panels(self) -> Any:
        """See :meth:`Rows.packed`."""
        return self._rows.packed()


@dataclass(frozen=True)
class BallTerms:
    """What the scores b_o - (4/c) asinh(√z)² of B queries follow from: with ⟨x,v⟩, ⟨v,r⟩, vv = |v|², g = 1/(1 - c vv)

        z = g (q₀ + q₁ vv + q₂⟨x,v⟩ + ⟨v,r⟩(q₃ + q₄⟨x,v⟩)), or 0 if that is negative.

    q are the numbers of :func:`murp.geometry.ball_distance.query_coefficients`, times s.
    """

    xv: Products  # (B, N)
    vr: Tensor  # (G, N), by relation
    group: Tensor  # (B) the row of that
    of_query: Tensor  # (B, 5) the numbers q
    entities: Tensor  # (3, N) the numbers vv, g, b_o
    c: float


@dataclass(frozen=True)
class FlatTerms:
    """What the scores b_o - max(|y|² + vv - 2⟨y,v⟩, 0) of B queries follow from."""

    yv: Products  # (B, N)
    yy: Tensor  # (B)
    entities: Tensor  # (2, N) the numbers vv, b_o


class Kernel(Protocol):
    """Ranks (B), float64, of B queries; NaN where a score is NaN.

    ``queries`` (4, B) has the target, the entity that is no candidate beside the known facts or -1, and where the
    known objects begin and end in ``objects`` (F), which are sorted there.
    """

    def ball(self, terms: BallTerms, queries: Tensor, objects: Tensor) -> Tensor: ...
    def flat(self, terms: FlatTerms, queries: Tensor, objects: Tensor) -> Tensor: ...


def kernel_for(model: object) -> Kernel | None:
    """The kernel that can rank ``model`` where it is, if there is one and what it needs is installed."""
    if not isinstance(model, MultiRelational) or not model.published:
        return None
    if model.dtype not in (torch.float32, torch.float64):
        return None
    package = {"cpu": "numba", "cuda": "triton"}.get(model.device.type)
    if package is None or importlib.util.find_spec(package) is None:
        return None
    return cast(Kernel, importlib.import_module(f"murp.evaluation.{package}_ranks"))


def batch_size(model: MultiRelational, memory: int) -> int:
    """How many queries fit into ``memory`` bytes, one row more of each matrix included; at least one."""
    size = memory // (model.num_entities * MATRICES * model.dtype.itemsize) - 1
    if model.device.type == "cpu":
        size = min(size, max(CPU_ROWS, CPU_CELLS // model.num_entities))
    return max(1, size)


def fused_ranks(
    kernel: Kernel,
    model: MultiRelational,
    known: KnownFacts,
    subjects: Indices,
    relations: Indices,
    targets: Indices,
    apart: Indices,
    size: int,
) -> Tensor:
    """Ranks (Q) of Q queries, ``size`` at a time; ``apart`` as in :class:`Kernel`. NaN where a score is NaN."""
    # Queries of one relation stand together, so that a batch needs few rows of ⟨v,r⟩.
    order = np.argsort(relations, kind="stable")
    relations = relations[order]
    starts, ends = known.ranges(subjects[order], relations)
    table = np.stack([subjects[order], relations, targets[order], apart[order], starts, ends])
    queries = torch.from_numpy(table).to(model.device)
    objects = torch.from_numpy(known.objects).to(model.device)
    rows = Rows(kernel, model, min(size, len(order)))
    ranks = torch.zeros(len(order), dtype=torch.float64, device=model.device)
    places = torch.from_numpy(order).to(model.device)
    for start in range(0, len(order), size):
        batch = slice(start, start + size)
        ranks[places[batch]] = rows.through_kernel(queries[:, batch], relations[batch], objects)
    return ranks


def entity_numbers(model: MultiRelational, points: Tensor, bias: Tensor) -> Tensor:
    """What scores need of entities v beside products: vv = |v|², on the ball 1 / (1 - c vv), and the bias.

    Points (n, d), biases (n) → (3, n) on the ball, (2, n) in Euclidean space.
    """
    vv, space = squared_norms(points), model.geometry
    return torch.stack([vv, bias] if space.is_flat else [vv, 1 / (1 - space.c * vv), bias])


class Rows:
    """What the batches of one model share: the numbers of its entities and room for the products.

    ``objects``: some entities instead of all, on the CPU.
    """

    def __init__(self, kernel: Kernel, model: MultiRelational, size: int, objects: slice = slice(None)) -> None:
        self.kernel, self.model = kernel, model
        self.entity, bias = model.parameters["entity"][objects], model.parameters["object_bias"][objects]
        self.size = size
        self.room: Tensor | None = None
        self.panels: Any = None
        self.entities = entity_numbers(model, self.entity, bias)

    def packed(self) -> Any:
        """The entities packed for :func:`murp.kernels.numba_products.multiply`, once for all batches."""
        from murp.kernels.numba_products import packed

        if self.panels is None:
            self.panels = packed(self.entity)
        return self.panels

    def through_kernel(self, queries: Tensor, relations: Indices, objects: Tensor) -> Tensor:
        """What the kernel makes of B queries: (6, B) subjects, relations and what a kernel asks for, (B), (F) → (B).

        ``relations`` are the second row of ``queries`` once more, on the CPU; queries of one relation share a product.
        """
        x = self._moved(queries[0], queries[1])
        r = self.model.parameters["translation"].index_select(0, queries[1])
        asked = queries[2:].contiguous()
        if self.model.geometry.is_flat:
            y = x - r
            return self.kernel.flat(FlatTerms(Products(y, self), row_products(y, y), self.entities), asked, objects)
        c = self.model.geometry.c
        xx, rr, xr = row_products(x, x), row_products(r, r), row_products(x, r)
        *bracket, of_both, scale = query_coefficients(xx, rr, xr, c)
        of_query = torch.stack([*bracket, torch.full_like(xx, of_both)], 1)
        of_query *= scale[:, None]
        distinct, group = np.unique(relations, return_inverse=True)
        indices = torch.from_numpy(np.concatenate([distinct, group])).to(queries.device)
        distinct_r = self.model.parameters["translation"].index_select(0, indices[: len(distinct)])
        vr = inner_products(distinct_r, self.entity, panels=self.packed() if queries.device.type == "cpu" else None)
        terms = BallTerms(Products(x, self), vr, indices[len(distinct) :], of_query, self.entities, c)
        return self.kernel.ball(terms, asked, objects)

    def _moved(self, subjects: Tensor, relations: Tensor) -> Tensor:
        """The subjects (B, d), each moved by its relation."""
        if subjects.device.type != "cpu":
            return self.model.move_subject(
                self.entity.index_select(0, subjects), self.model.rows("relation", relations)
            )
        # In blocks of one shape: a query's numbers do not depend on its batch.
        moved = torch.empty(len(subjects), self.entity.shape[1], dtype=self.entity.dtype)
        for start in range(0, len(subjects), QUERIES):
            of = slice(start, start + QUERIES)
            subject, relation = self.model.query_rows(subjects[of], relations[of])
            moved[of] = self.model.move_subject(subject["entity"], relation)[: len(moved[of])]
        return moved
