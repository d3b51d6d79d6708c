"""Objectives over the scores of all entities, without a tensor of queries × entities.

Scores have the form φ[b,n] = ⟨q_b,v_n⟩ + a_b + c_n: every bilinear model, the squared distance of Euclid's space
(2⟨q,v⟩ - |q|² - |v|²) and the product of the hyperboloid are of it. Two means are offered,

    log-sum-exp   1/B Σ_b log Σ_n exp φ[b,n]          of a cross-entropy over all entities,
    softplus      1/BN Σ_b Σ_n log(1 + exp φ[b,n])    of a Bernoulli loss on all entities.

The first may be a weighted mean, Σ_b w_b log Σ_n exp φ[b,n] with Σ_b w_b = 1. The labels' terms are few and left to
the caller. An entity with c = -∞ is no candidate: it has weight 0. NaN gives NaN, and so do the gradients of a query
without candidates.

Where gradients are wanted they are computed together with the value, by a second pass over the scores that makes them
again: the weights of all cells are known from the first. Backward only multiplies them. Blocks of scores stay in a
core's cache (:mod:`murp.kernels.numba_all_entities`) or in the registers (:mod:`murp.kernels.triton_all_entities`).

:func:`blocked_reduction` is for scores of any other form, in plain PyTorch, a block of entities at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from murp import threads
from murp.kernels.operators import differentiable, operator

Kind = Literal["log_sum_exp", "softplus"]
ScoreBlock = Callable[[Sequence[Tensor], Sequence[Tensor]], Tensor]

# Cells of a block of :func:`blocked_reduction`: what a core's cache holds, and what fills a GPU.
_CELLS = {"cpu": 2**18, "cuda": 2**22}
# Numbers of a row, at most, that the kernels for GPUs know: blocks of wider rows do not fit into a GPU's shared memory.
WIDEST = {torch.float32: 1024, torch.float64: 256}
_GROUPS = 16  # of blocks, each with sums of its own for the queries' gradients: at most so many threads have work


def mean_log_sum_exp(
    q: Tensor, v: Tensor, a: Tensor | None = None, c: Tensor | None = None, shares: Tensor | None = None
) -> Tensor:
    """The mean over queries of log Σ_n exp(⟨q_b,v_n⟩ + a_b + c_n): q (B, d), v (N, d), a (B), c (N) → ().

    With ``shares`` w (B), positive and of sum 1, the weighted mean. Differentiable once by q, v, a and c. On CUDA
    float32 is multiplied with 11 bits a factor: see :data:`murp.kernels.triton_all_entities.FLOAT32_PRODUCTS`.
    """
    return _mean(True, q, v, a, c, shares)


def mean_softplus(q: Tensor, v: Tensor, a: Tensor | None = None, c: Tensor | None = None) -> Tensor:
    """The mean over queries and entities of log(1 + exp(⟨q_b,v_n⟩ + a_b + c_n)); see :func:`mean_log_sum_exp`."""
    return _mean(False, q, v, a, c, None)


def _mean(softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None) -> Tensor:
    given = [tensor for tensor in (q, v, a, c, shares) if tensor is not None]
    shapes = [tuple(tensor.shape) for tensor in given]
    wanted: list[tuple[int, ...]] = [(len(q), v.shape[-1]), (len(v), q.shape[-1])]
    wanted += [(len(of),) for of, own in ((q, a), (v, c), (q, shares)) if own is not None]
    if shapes != wanted or 0 in (len(q), len(v), q.shape[-1]):
        raise ValueError(f"queries (B, d), entities (N, d) and their numbers (B) and (N) are wanted, not {shapes}")
    if len({(tensor.dtype, tensor.device) for tensor in given}) > 1 or q.dtype not in (torch.float32, torch.float64):
        kinds = ", ".join(f"{tensor.dtype} on {tensor.device}" for tensor in given)
        raise TypeError(f"tensors of one device, all float32 or all float64, are wanted, not {kinds}")
    if q.device.type != "cpu" and q.shape[-1] > WIDEST[q.dtype]:
        return _in_blocks("log_sum_exp" if softmax else "softplus", q, v, a, c, shares)
    gradients = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
    value: Tensor = _reduce(softmax, q, v, a, c, shares, gradients)[0]
    return value


def _in_blocks(kind: Kind, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None) -> Tensor:
    """The same in plain PyTorch."""

    def scores(queries: Sequence[Tensor], entities: Sequence[Tensor]) -> Tensor:
        found = queries[0] @ entities[0].T
        for own in queries[1:]:
            found = found + own[:, None]
        for own in entities[1:]:
            found = found + own
        return found

    value: Tensor = blocked_reduction(scores, [q] if a is None else [q, a], [v] if c is None else [v, c], kind, shares)
    return value


def _reduced(
    softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The mean and its gradients by q, v, a and c; those that are not wanted are empty."""
    q, v = q.detach().contiguous(), v.detach().contiguous()
    own_a, own_c, weights = (None if tensor is None else tensor.detach().contiguous() for tensor in (a, c, shares))
    if q.device.type == "cpu":
        from murp.kernels import numba_all_entities as kernels
    else:
        from murp.kernels import triton_all_entities as kernels  # type: ignore[no-redef]
    found = kernels.reduced(softmax, q, v, own_a, own_c, weights, gradients)
    value, dq, dv, da, dc = found if gradients else (*found, *(q.new_empty(0) for _ in range(4)))
    return value, dq, dv, q.new_empty(0) if a is None else da, q.new_empty(0) if c is None else dc


_registered = torch.library.custom_op("murp::all_entities", mutates_args=())(_reduced)


@_registered.register_fake
def _(
    softmax: bool, q: Tensor, v: Tensor, a: Tensor | None, c: Tensor | None, shares: Tensor | None, gradients: bool
) -> tuple[Tensor, ...]:
    shapes = [tensor.shape if gradients and tensor is not None else (0,) for tensor in (q, v, a, c)]
    return q.new_empty(()), *(q.new_empty(shape) for shape in shapes)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.set_materialize_grads(False)
    ctx.has = [tensor is not None for tensor in inputs[1:5]]
    ctx.save_for_backward(*output[1:])


def _multiply(ctx: Any, of_value: Tensor | None, *of_gradients: Tensor | None) -> tuple[Tensor | None, ...]:
    if any(gradient is not None for gradient in of_gradients):
        raise RuntimeError("the means over all entities can be differentiated once, not twice")
    found = [
        of_value * gradient if has and of_value is not None else None
        for has, gradient in zip(ctx.has, ctx.saved_tensors, strict=True)
    ]
    return None, *found, None, None


_registered.register_autograd(_multiply, setup_context=_keep)
_reduce = operator(_registered, differentiable(_reduced, _keep, _multiply))


@torch.compiler.disable
def blocked_reduction(
    score_block: ScoreBlock,
    query_parts: Sequence[Tensor],
    entity_parts: Sequence[Tensor],
    kind: Kind,
    shares: Tensor | None = None,
) -> Tensor:
    """The mean of log-sum-exp or of softplus over the scores of all entities, whatever they are: a scalar.

    Of log-sum-exp it may be the weighted mean with ``shares`` (B).

    ``score_block(query_parts, block)`` gives the scores (B, n) of n entities. It is handed the queries' parts as they
    are, so that a number shared by all, such as a curvature, may be among them; and of each of the entities' parts
    (N, …) the rows of the block. It must not use other tensors that are to have gradients.

    Differentiable once. Value and gradients are computed block by block with autograd inside each. For log-sum-exp the
    scores are computed twice: first for the sums of the rows, then for the gradients. On the CPU a block is one
    thread's work. Blocks and the order of all sums depend on the shapes alone: the bits are the same for any number of
    threads.
    """
    if kind not in ("log_sum_exp", "softplus"):
        raise ValueError(f"kind must be log_sum_exp or softplus, not {kind!r}")
    value: Tensor = _Blocked.apply(score_block, kind, shares, len(query_parts), *query_parts, *entity_parts)
    return value


class _Blocked(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, score_block: ScoreBlock, kind: Kind, shares: Tensor | None, queries: int, *parts: Tensor
    ) -> Tensor:
        wanted = ctx.needs_input_grad[4:]
        leaves = [part.detach().requires_grad_(want) for part, want in zip(parts, wanted, strict=True)]
        blocks = _Blocks(score_block, leaves[:queries], leaves[queries:])
        if kind == "log_sum_exp":
            rows = blocks.rows(lambda scores: scores.logsumexp(1)).logsumexp(0)
            if any(wanted):
                divisor = len(rows) if shares is None else 1 / shares[:, None]
                blocks.add_gradients(lambda scores: (scores - rows[:, None]).exp_() / divisor)
            value = rows.mean() if shares is None else rows @ shares
        else:
            cells = blocks.size * blocks.number
            rows = blocks.rows(lambda scores: _softplus(scores).sum(1)).sum(0) / blocks.number
            if any(wanted):
                blocks.add_gradients(lambda scores: scores.sigmoid() / cells)
            value = rows.mean()
        ctx.gradients = blocks.gradients
        return value

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, of_value: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, None, None, *(None if g is None else of_value * g for g in ctx.gradients)


def _softplus(scores: Tensor) -> Tensor:
    # From the threshold on x stands for log(1 + exp x); PyTorch's own, 20, is too low for float64.
    return torch.nn.functional.softplus(scores, threshold=40.0)


class _Blocks:
    """The scores of all entities, a block of them at a time; groups of blocks are shared among threads."""

    def __init__(self, score_block: ScoreBlock, queries: list[Tensor], entities: list[Tensor]) -> None:
        self.score_block, self.queries, self.entities = score_block, queries, entities
        self.number = len(entities[0])
        with torch.no_grad():
            some = score_block(queries, [part[:1] for part in entities])
        self.like, self.size = some, len(some)
        self.length = max(1, _CELLS[some.device.type] // self.size)
        self.starts = range(0, self.number, self.length)
        self.gradients: list[Tensor | None] = [
            torch.zeros_like(part) if part.requires_grad else None for part in (*queries, *entities)
        ]

    def rows(self, reduce: Callable[[Tensor], Tensor]) -> Tensor:
        """What is made of each row of each block: (blocks, B)."""
        found = self.like.new_empty(len(self.starts), self.size)

        @torch.no_grad()
        def work(group: range) -> None:
            for i in group:
                found[i] = reduce(self.score_block(self.queries, self._block(i)))

        self._share(work)
        return found

    def add_gradients(self, weigh: Callable[[Tensor], Tensor]) -> None:
        """Add the gradients of the scores' sum with these weights to ``gradients``."""
        queries = [part for part in self.queries if part.requires_grad]
        of_queries = [gradient for gradient in self.gradients[: len(self.queries)] if gradient is not None]
        of_entities = self.gradients[len(self.queries) :]
        sums: dict[int, list[Tensor]] = {}

        def work(group: range) -> None:
            mine = [torch.zeros_like(part) for part in queries]
            for i in group:
                block = [part.detach().requires_grad_(part.requires_grad) for part in self._block(i)]
                with torch.enable_grad():
                    scores = self.score_block(self.queries, block)
                leaves = [*queries, *(part for part in block if part.requires_grad)]
                weights = weigh(scores.detach())
                found = iter(torch.autograd.grad(scores, leaves, weights, allow_unused=True))
                for total, gradient in zip(mine, found, strict=False):
                    if gradient is not None:
                        total += gradient
                for whole in of_entities:
                    if whole is not None and (gradient := next(found)) is not None:
                        whole[self._slice(i)] = gradient
            sums[group.start] = mine

        self._share(work)
        for start in sorted(sums):
            for whole, part in zip(of_queries, sums[start], strict=True):
                whole += part

    def _slice(self, i: int) -> slice:
        return slice(self.starts[i], self.starts[i] + self.length)

    def _block(self, i: int) -> list[Tensor]:
        return [part[self._slice(i)] for part in self.entities]

    def _share(self, work: Callable[[range], None]) -> None:
        if self.like.device.type != "cpu":
            work(range(len(self.starts)))
            return
        size = -(-len(self.starts) // _GROUPS)
        groups = iter([range(i, min(i + size, len(self.starts))) for i in range(0, len(self.starts), size)])

        def take() -> None:
            for group in groups:
                work(group)

        threads.share_torch(take, min(threads.count(), _GROUPS, len(self.starts)))
