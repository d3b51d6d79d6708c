"""The optimizers' compiled loops against their definition, which is :meth:`step`."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp import threads
from murp.geometry import Euclidean, Geometry, PoincareBall
from murp.models.model import Table
from murp.optimizers import Optimizer
from murp.optimizers.adagrad import Adagrad
from murp.optimizers.adam import Adam
from murp.optimizers.row_adagrad import RowAdagrad
from murp.optimizers.sgd import SGD

FLAT = Euclidean()


def moved(
    optimizer: Optimizer, x: Tensor, gradients: list[Tensor], touched: list[Tensor | None], by: str
) -> dict[str, Tensor]:
    """Rows and state after some steps: by the definition, or by the loop with marks or with the numbers of rows."""
    shapes = optimizer.state_shapes(Table("x", "entity", x.shape[1:]))
    x = x.clone()
    state = {name: x.new_zeros(len(x), *shape) for name, shape in shapes.items()}
    for gradient, rows in zip(gradients, touched, strict=True):
        if by == "marks":
            assert optimizer.move(FLAT, x, gradient, state, 0.1, marks=rows)
            continue
        if by == "numbers":
            # In another order, and a second time without a mark: only where it has one may a row move.
            where = torch.arange(len(x)) if rows is None else rows.nonzero().squeeze(1)
            where = where.flip(0).repeat(2)
            first = torch.arange(len(where)) < len(where) // 2
            given = torch.where(first[:, None], gradient[where], torch.nan)
            assert optimizer.move(FLAT, x, given, state, 0.1, where=where, marks=first)
            continue
        new = dict(state)
        stepped = optimizer.step(FLAT, x, gradient, new, 0.1)
        keep = torch.ones(len(x), 1, dtype=torch.bool) if rows is None else rows[:, None]
        x = torch.where(keep, stepped, x)
        state = {name: torch.where(keep, new[name], state[name]) for name in state}
    return {"x": x, **state}


def drawn(rows: int, width: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, list[Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    x, *gradients = (torch.randn(rows, width, generator=draw, dtype=torch.float64).to(dtype) for _ in range(4))
    return x, gradients


@settings(max_examples=at_most(30), deadline=None)
@given(
    rows=st.integers(1, 150),
    width=st.sampled_from([1, 3, 8, 21, 40]),
    seed=st.integers(0, 2**16),
    beta1=st.sampled_from([0.0, 0.9]),
    beta2=st.sampled_from([0.5, 0.999]),
    whole=st.booleans(),
)
def test_the_loop_makes_the_step_of_the_definition(
    rows: int, width: int, seed: int, beta1: float, beta2: float, whole: bool
) -> None:
    x, gradients = drawn(rows, width, seed)
    marks = torch.rand(3, rows, generator=torch.Generator().manual_seed(seed)) < 0.5
    touched: list[Tensor | None] = [None] * 3 if whole else list(marks)
    # A large ε: a gradient near 0 is else divided by itself, rounding and all.
    for optimizer in (Adam(beta1=beta1, beta2=beta2, eps=1e-2), Adagrad(), RowAdagrad()):
        expected = moved(optimizer, x, gradients, touched, "definition")
        by_marks, by_numbers = (moved(optimizer, x, gradients, touched, by) for by in ("marks", "numbers"))
        for name, values in by_marks.items():
            torch.testing.assert_close(values, expected[name], rtol=1e-11, atol=1e-11, msg=name)
            assert torch.equal(values, by_numbers[name]), name  # a row's result depends only on the row


@pytest.mark.parametrize("by", ["marks", "numbers"])
@pytest.mark.parametrize("optimizer", [Adam(), Adagrad(), RowAdagrad()], ids=["adam", "adagrad", "row-adagrad"])
def test_the_number_of_threads_changes_no_bit(optimizer: Optimizer, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is one thread's work."""
    x, gradients = drawn(1000, 9, 0, torch.float32)
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    found = []
    for number in (1, 3):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        found.append(moved(optimizer, x, gradients, [None] * 3, by))
    assert all(torch.equal(found[0][name], found[1][name]) for name in found[0])


class Halved(Adagrad):
    """Half of the sums, and one for each row."""

    def state_shapes(self, table: Table) -> dict[str, tuple[int, ...]]:
        return {"sum": (1,)}

    def squares(self, geometry: Geometry, x: Tensor, gradient: Tensor) -> Tensor:
        return geometry.inner(x, gradient, gradient) / 2


def test_a_subclass_does_not_inherit_the_loop() -> None:
    """Its step may be another one."""
    x, (gradient, *_) = drawn(4, 3, 0)
    before = x.clone()
    assert not Halved().move(FLAT, x, gradient, {"sum": torch.zeros(4, 1, dtype=x.dtype)}, 0.1)
    assert torch.equal(x, before)


def test_what_has_no_loop_says_so() -> None:
    x, (gradient, *_) = drawn(4, 3, 0)
    before = x.clone()
    sums = {"sum": torch.zeros(4, 1)}
    assert not SGD().move(FLAT, x, gradient, {}, 0.1)
    assert not RowAdagrad(clip=1.0).move(FLAT, x, gradient, sums, 0.1)
    assert not RowAdagrad().move(PoincareBall(), x, gradient, sums, 0.1)
    assert not Adam(clip=1.0).move(FLAT, x, gradient, {}, 0.1)
    assert not Adam().move(PoincareBall(), x, gradient, {}, 0.1)
    assert torch.equal(x, before)
