"""Means over the scores of B questions against all N entities, without a tensor of B × N."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from murp.kernels.all_entities import Kind, blocked_reduction, mean_log_sum_exp, mean_softplus
from murp.kernels.formula_means import Kind as FormulaKind
from murp.kernels.formula_means import computes, formula_mean
from murp.kernels.formulas import Formula
from murp.models.model import Candidate, Model, Query


class EveryScore:
    """The scores φ[b,n] of queries (B, …) with candidates (N, …): each method is one number that has a gradient.

    A model whose scores have the form ⟨q,v⟩ + a + c (:meth:`Model.linear`) uses the fused kernels. Models whose ending
    is a formula have kernels that are made of it. Other models score one block of candidates at a time, by autograd.
    """

    def __init__(self, model: Model, query: Query, everything: Candidate) -> None:
        self.model, self.query, self.everything = model, query, everything
        self.form = model.linear(query, everything)
        self.formula = None if self.form is not None else _formula(model, query, everything)

    @property
    def questions(self) -> int:
        """B."""
        return len(self.query.vectors[0])

    @property
    def entities(self) -> int:
        """N."""
        return len(self.everything.vectors[0])

    def log_sum_exp(self, shares: Tensor | None = None) -> Tensor:
        """1/B Σ_b log Σ_n exp φ[b,n]; with ``shares`` (B) in place of 1/B if they are given."""
        return self._reduced("log_sum_exp", shares) if self.form is None else mean_log_sum_exp(*self.form, shares)

    def softplus(self) -> Tensor:
        """1/BN Σ_b Σ_n log(1 + exp φ[b,n])."""
        return self._reduced("softplus") if self.form is None else mean_softplus(*self.form)

    def mean(self) -> Tensor:
        """1/BN Σ_b Σ_n φ[b,n]."""
        if self.formula is not None:
            return self._of_formula("mean")
        if self.form is None:
            return self._in_blocks("softplus") - self._in_blocks("softplus", negated=True)  # the difference is φ
        q, v, a, c = self.form
        found = q.mean(0) @ v.mean(0)
        for own in (a, c):
            if own is not None:
                found = found + own.mean()
        return found

    def _reduced(self, kind: Kind, shares: Tensor | None = None) -> Tensor:
        return self._in_blocks(kind, shares) if self.formula is None else self._of_formula(kind, shares)

    def _in_blocks(self, kind: Kind, shares: Tensor | None = None, negated: bool = False) -> Tensor:
        """The mean, one block of candidates at a time; of -φ if ``negated``."""
        query, everything = self.query, self.everything

        def scores(asked: Sequence[Tensor], block: Sequence[Tensor]) -> Tensor:
            found = self.model.meet(
                Query(*_again(asked, query.vectors, query.numbers)),
                Candidate(*_again(block, everything.vectors, everything.numbers)),
            )
            return -found if negated else found

        ours, theirs = self._numbers()
        asked, entities = [*query.vectors, *ours], [*everything.vectors, *theirs]
        value: Tensor = blocked_reduction(scores, asked, entities, kind, shares)
        return value

    def _numbers(self) -> tuple[list[Tensor], list[Tensor]]:
        """Those of the queries (B) and of the candidates (N), also where a model has one for all."""
        ours, theirs = self.query.numbers.values(), self.everything.numbers.values()
        return (
            [number.to(self.model.dtype).expand(self.questions) for number in ours],
            [number.to(self.model.dtype).expand(self.entities) for number in theirs],
        )

    def _of_formula(self, kind: FormulaKind, shares: Tensor | None = None) -> Tensor:
        assert self.formula is not None
        ours, theirs = self._numbers()
        vectors = self.query.vectors, self.everything.vectors
        value: Tensor = formula_mean(self.formula, kind, vectors[0], ours, vectors[1], theirs, shares)
        return value


@torch.compiler.disable  # type: ignore[untyped-decorator]
def _formula(model: Model, query: Query, everything: Candidate) -> Formula | None:
    """The model's ending as a formula; None if it is none, or if this device has no kernel for it."""
    if not model.products:
        return None
    found = model.formula(len(query.vectors), query.numbers, everything.numbers)
    return found if found is not None and computes(found, query.vectors) else None


def _again(
    parts: Sequence[Tensor], vectors: Sequence[Tensor], numbers: dict[str, Tensor]
) -> tuple[tuple[Tensor, ...], dict[str, Tensor]]:
    """Rebuild vectors and named numbers from a flat sequence."""
    count = len(vectors)
    return tuple(parts[:count]), dict(zip(numbers, parts[count:], strict=True))
