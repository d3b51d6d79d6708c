"""Means over all entities of scores that are a formula of inner products and numbers.

For φ[b,n] = f(⟨q_b,v_n⟩, …, numbers of b, numbers of n) with f a :class:`murp.kernels.formulas.Formula`:

    log-sum-exp   Σ_b w_b log Σ_n exp φ[b,n], with w_b = 1/B or given weights,
    softplus      1/BN Σ_b Σ_n log(1 + exp φ[b,n]),
    mean          1/BN Σ_b Σ_n φ[b,n].

Value and gradients are computed block by block of entities, so that no tensor of queries × entities is held. On a CPU
the products of a block are PyTorch's; all of f and its derivatives is one loop over them while they are in a core's
cache. For log-sum-exp the products are computed twice: the weights of all cells are known from the first pass. On CUDA
a kernel does all of it: see :mod:`murp.kernels.triton_formulas`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from murp import threads
from murp.kernels.formulas import Formula

Kind = Literal["log_sum_exp", "softplus", "mean"]

_CELLS = 2**17  # of a block: what a core's own cache holds of products and their gradients
_GROUPS = 16  # of blocks, each with sums of its own for the queries' gradients: at most so many threads have work
_LANES = 16  # the width of a block is a multiple of them


def computes(formula: Formula, queries: Sequence[Tensor]) -> bool:
    """Whether :func:`formula_mean` can be had on the device of these vectors."""
    if queries[0].device.type == "cpu":
        return True
    if importlib.util.find_spec("triton") is None:
        return False
    from murp.kernels import triton_formulas

    return triton_formulas.fits(formula, queries)


@torch.compiler.disable
def formula_mean(
    formula: Formula,
    kind: Kind,
    queries: Sequence[Tensor],
    query_numbers: Sequence[Tensor],
    vectors: Sequence[Tensor],
    numbers: Sequence[Tensor],
    shares: Tensor | None = None,
) -> Tensor:
    """The mean of a kind: a scalar, differentiable once.

    ``queries`` are P tensors (B, d), and ``vectors`` as many (N, d), or one for all of them; ``query_numbers`` (B) and
    ``numbers`` (N). They are the inputs of the formula in this order: products, the queries' numbers, the entities'.
    ``shares`` (B) are the weights of a log-sum-exp. Blocks and the order of all sums depend on the shapes alone.
    """
    counts = len(queries), len(query_numbers), len(vectors), len(numbers)
    value: Tensor = _Mean.apply(formula, kind, shares, counts, *queries, *query_numbers, *vectors, *numbers)
    return value


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, formula: Formula, kind: Kind, shares: Tensor | None, counts: tuple[int, ...], *given: Tensor
    ) -> Tensor:
        parts = iter([part.detach() for part in given])
        groups = [[next(parts) for _ in range(count)] for count in counts]
        value, ctx.gradients = _found(formula, kind, groups, shares, any(ctx.needs_input_grad[4:]))
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_value: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, None, *(None if g is None else of_value * g for g in ctx.gradients)


def _found(
    formula: Formula, kind: Kind, groups: list[list[Tensor]], shares: Tensor | None, wanted: bool
) -> tuple[Tensor, list[Tensor | None]]:
    """The value and, if ``wanted``, the gradients by all of ``groups``, on the device where these are."""
    if groups[0][0].device.type == "cpu":
        blocks = _Blocks(formula, *groups)
        return blocks.mean(kind, shares, wanted), blocks.gradients()
    from murp.kernels import triton_formulas

    return triton_formulas.reduced(formula, kind, groups, shares, wanted)


class _Blocks:
    """The cells of all queries and a block of entities at a time. Groups of blocks are shared among threads."""

    def __init__(
        self, formula: Formula, queries: list[Tensor], query_numbers: list[Tensor], vectors: list[Tensor],
        numbers: list[Tensor],
    ) -> None:  # fmt: skip
        from murp.kernels.numba_formulas import loops

        self.counts = len(queries), len(query_numbers), len(numbers)
        self.loops = loops(formula, self.counts)
        self.size, self.number = len(queries[0]), len(vectors[0])
        together = len(vectors) == 1  # all queries meet the same vectors: one product of matrices
        self.queries = [torch.cat(queries)] if together else [query.contiguous() for query in queries]
        self.vectors = [of.contiguous() for of in vectors]
        like = self.queries[0]
        self.own = _stacked(query_numbers, like, self.size)
        self.theirs = _stacked(numbers, like, self.number)
        length = max(1, _CELLS // self.size)
        self.length = min(-(-length // _LANES), -(-self.number // _LANES)) * _LANES
        self.starts = range(0, self.number, self.length)
        self.by_queries: list[Tensor] = []
        self.by_own = torch.zeros_like(self.own)
        self.by_vectors = [torch.empty_like(of) for of in self.vectors]
        self.by_theirs = torch.empty_like(self.theirs)

    def mean(self, kind: Kind, shares: Tensor | None, wanted: bool) -> Tensor:
        """The value; what it finds of gradients is in :meth:`gradients`."""
        from murp.kernels.numba_formulas import GIVEN, SIGMOID, SOFTMAX

        like, cells = self.own, self.size * self.number
        if kind == "log_sum_exp":
            logs = self._log_sums()
            shares = like.new_full((self.size,), 1 / self.size) if shares is None else shares.detach().contiguous()
            if wanted:
                self._derivatives(SOFTMAX, logs, shares)
            return logs @ shares
        even = like.new_full((self.size,), 1 / cells)
        if kind == "softplus":
            return self._derivatives(SIGMOID, even, even).sum() / cells
        value = self._sums().sum() / cells
        if wanted:
            self._derivatives(GIVEN, even, even)
        return value

    def gradients(self) -> list[Tensor | None]:
        """By all that was given, in its order; after :meth:`mean` with gradients."""
        if not self.by_queries:
            return [None] * (self.counts[0] + self.counts[1] + len(self.vectors) + self.counts[2])
        of_queries = list(self.by_queries[0].split(self.size)) if len(self.by_queries) == 1 else self.by_queries
        return [*of_queries, *self.by_own, *self.by_vectors, *self.by_theirs]

    def _log_sums(self) -> Tensor:
        """log Σ exp φ of each query (B)."""
        return self._rows(lambda room, width, found: room.log_sums(width, found)).logsumexp(0)

    def _sums(self) -> Tensor:
        """Σ φ of each query (B)."""
        return self._rows(lambda room, width, found: room.sums(width, found)).sum(0)

    def _rows(self, reduce: Callable[[_Room, int, Tensor], None]) -> Tensor:
        """What is made of each row of each block (blocks, B)."""
        found = self.own.new_empty(len(self.starts), self.size)

        def work(room: _Room, group: range) -> None:
            for i in group:
                reduce(room, room.fill(self.starts[i]), found[i])

        self._share(work)
        return found

    def _derivatives(self, kind: int, logs: Tensor, shares: Tensor) -> Tensor:
        """Find all gradients of the sum of cells with weights; returns Σ softplus(φ) of each query (B)."""
        found = self.own.new_empty(len(self.starts), self.size)
        sums: dict[int, tuple[list[Tensor], Tensor]] = {}

        def work(room: _Room, group: range) -> None:
            mine = [torch.zeros_like(query) for query in self.queries]
            own = torch.zeros_like(self.own)
            for i in group:
                width = room.fill(self.starts[i])
                own += room.derivatives(kind, width, logs, shares, found[i])
                entities = slice(self.starts[i], self.starts[i] + width)
                self.by_theirs[:, entities] = room.by_candidates[:, :width]
                for total, query, of, by, cells in zip(
                    mine, self.queries, self.vectors, self.by_vectors, room.cells, strict=True
                ):
                    total.addmm_(cells[:, :width], of[entities])
                    torch.mm(cells[:, :width].T, query, out=by[entities])
            sums[group.start] = mine, own

        self._share(work)
        self.by_queries = [torch.zeros_like(query) for query in self.queries]
        for start in sorted(sums):
            mine, own = sums[start]
            self.by_own += own
            for total, part in zip(self.by_queries, mine, strict=True):
                total += part
        return found.sum(0)

    def _share(self, work: Callable[[_Room, range], None]) -> None:
        size = -(-len(self.starts) // _GROUPS)
        groups = iter([range(i, min(i + size, len(self.starts))) for i in range(0, len(self.starts), size)])

        @torch.no_grad()
        def take() -> None:
            room = _Room(self)
            for group in groups:
                work(room, group)

        threads.share_torch(take, min(threads.count(), _GROUPS, len(self.starts)))


class _Room:
    """A thread's own arrays for the cells of a block."""

    def __init__(self, blocks: _Blocks) -> None:
        self.blocks = blocks
        products, queries, numbers = blocks.counts
        like, shape = blocks.own, (blocks.size, blocks.length)
        self.products = like.new_zeros(products, *shape)
        rows = self.products.view(-1, blocks.length) if len(blocks.queries) == 1 else None
        self.cells = list(self.products) if rows is None else [rows]  # the places of the products, matrix by matrix
        self.candidates, self.by_candidates = (like.new_zeros(numbers, blocks.length) for _ in range(2))
        self.by_queries = like.new_empty(queries, blocks.size)
        self.out, self.zeros = like.new_empty(shape), np.zeros(blocks.length, like.numpy().dtype)
        self.given = [array.numpy() for array in (self.products, blocks.own, self.candidates)]

    def fill(self, start: int) -> int:
        """Compute the products with a block of entities; returns how many these are."""
        blocks = self.blocks
        entities = slice(start, start + blocks.length)
        width = min(blocks.length, blocks.number - start)
        for cells, query, of in zip(self.cells, blocks.queries, blocks.vectors, strict=True):
            torch.mm(query, of[entities].T, out=cells[:, :width])
        self.candidates[:, :width] = blocks.theirs[:, entities]
        return width

    def log_sums(self, width: int, found: Tensor) -> None:
        self.blocks.loops.log_sums(*self.given, width, self.zeros, self.out.numpy(), found.numpy())

    def sums(self, width: int, found: Tensor) -> None:
        self.blocks.loops.values(*self.given, self.out.numpy())
        torch.sum(self.out[:, :width], 1, out=found)

    def derivatives(self, kind: int, width: int, logs: Tensor, shares: Tensor, found: Tensor) -> Tensor:
        """Replace the products by their gradients; returns those by the queries' numbers (Q, B)."""
        self.by_candidates.zero_()
        self.out[:] = shares[:, None]  # what multiplies a cell, if it is given
        self.blocks.loops.derivatives[kind](
            *self.given, width, logs.numpy(), shares.numpy(), self.out.numpy(), self.by_queries.numpy(),
            self.by_candidates.numpy(), found.numpy(),
        )  # fmt: skip
        return self.by_queries


def _stacked(numbers: Sequence[Tensor], like: Tensor, length: int) -> Tensor:
    """Numbers (length) as rows of one tensor."""
    return torch.stack([*numbers]) if numbers else like.new_empty(0, length)
