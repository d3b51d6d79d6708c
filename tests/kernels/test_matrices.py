"""A matrix and a vector for each row of a batch, against PyTorch's product."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp import threads
from murp.kernels.matrices import RowsAt, _registered, applied, applied_at
from murp.kernels.numba_matrices import ordered


def plain(matrix: Tensor, x: Tensor, transposed: bool) -> Tensor:
    return torch.einsum("bmd,bm->bd" if transposed else "bmd,bd->bm", matrix, x)


def drawn(size: int, rows: int, dim: int, transposed: bool, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    matrix = torch.randn(size, rows, dim, dtype=torch.float64, generator=draw)
    return matrix, torch.randn(size, rows if transposed else dim, dtype=torch.float64, generator=draw)


@settings(max_examples=at_most(40), deadline=None)
@given(
    size=st.integers(1, 40),
    rows=st.integers(1, 20),
    dim=st.sampled_from([1, 3, 8, 17, 40]),
    transposed=st.booleans(),
    lies_turned=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_values_and_gradients_are_those_of_pytorch(
    size: int, rows: int, dim: int, transposed: bool, lies_turned: bool, seed: int
) -> None:
    matrix, x = drawn(size, rows, dim, transposed, seed)
    if lies_turned:  # the same numbers, the other way round in memory
        matrix = matrix.transpose(1, 2).contiguous().transpose(1, 2)
    leaves = [matrix.requires_grad_(), x.requires_grad_()]
    found = []
    for way in (applied, plain):
        value = way(*leaves, transposed)
        found.append([value, *torch.autograd.grad(value.sin().sum(), leaves)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


@settings(max_examples=at_most(40), deadline=None)
@given(
    size=st.integers(1, 40),
    tables=st.integers(1, 9),
    rows=st.integers(1, 20),
    dim=st.sampled_from([1, 3, 8, 17, 40]),
    transposed=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_matrices_read_where_they_lie_give_what_copies_of_them_give(
    size: int, tables: int, rows: int, dim: int, transposed: bool, seed: int
) -> None:
    """Some matrices occur several times, others not at all: their gradient is 0."""
    table = drawn(tables, rows, dim, transposed, seed)[0].requires_grad_()
    x = drawn(size, rows, dim, transposed, seed + 1)[1].requires_grad_()
    where = torch.randint(tables, (size,), generator=torch.Generator().manual_seed(seed))
    values = [applied_at(RowsAt({"matrix": table}, where), "matrix", x, transposed), plain(table[where], x, transposed)]
    found = [[value, *torch.autograd.grad(value.sin().sum(), [table, x])] for value in values]
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


def test_rows_at_indices_are_copied_when_they_are_asked_for() -> None:
    tables = {"matrix": torch.arange(12.0).view(3, 2, 2), "bias": torch.arange(3.0)}
    rows = RowsAt(tables, torch.tensor([2, 0, 2]))
    assert list(rows) == ["matrix", "bias"]
    assert len(rows) == 2
    for name, values in rows.items():
        assert torch.equal(values, tables[name][[2, 0, 2]])
    assert rows["bias"] is rows["bias"], "copied twice"
    assert torch.equal(rows.at(torch.tensor([1, 1, 2]))["bias"], torch.tensor([0.0, 0.0, 2.0]))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_neither_threads_nor_the_place_in_the_batch_change_a_bit(
    dtype: torch.dtype, transposed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    matrix, x = (values.to(dtype).requires_grad_() for values in drawn(70, 40, 40, transposed, 0))
    table = {"matrix": drawn(6, 40, 40, transposed, 1)[0].to(dtype).requires_grad_()}
    rows = RowsAt(table, torch.arange(70) * 7 % 6)
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        value = applied(matrix, x, transposed)
        lying = applied_at(rows, "matrix", x, transposed)
        found.append([value, *torch.autograd.grad(value.square().sum(), [matrix, x])])
        found[-1] += [lying, *torch.autograd.grad(lying.square().sum(), [table["matrix"], x])]
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))
    assert torch.equal(applied(matrix.flip(0), x.flip(0), transposed).flip(0), found[0][0])


@pytest.mark.parametrize("where", [[0, 3], [-1, 0], [0], [0, 1, 2]])
def test_indices_that_do_not_fit_are_refused(where: list[int]) -> None:
    """A compiled loop would read what lies there."""
    table, x = drawn(3, 4, 4, False, 0)
    with pytest.raises(IndexError, match="indices of 3 matrices are wanted"):
        applied_at(RowsAt({"matrix": table}, torch.tensor(where)), "matrix", x[:2])


def test_one_matrix_for_all_vectors_is_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("murp.kernels.matrices._multiply", None)
    matrix, x = drawn(5, 3, 4, False, 0)
    torch.testing.assert_close(applied(matrix[:1], x), x @ matrix[0].T)


def test_a_compiled_step_contains_products_with_matrices_where_they_lie() -> None:
    table, _ = drawn(3, 4, 5, False, 0)
    x = drawn(4, 4, 5, False, 1)[1].requires_grad_()
    table.requires_grad_()
    where = torch.tensor([2, 0, 2, 1])

    def value(table: Tensor, where: Tensor, x: Tensor) -> Tensor:
        return applied_at(RowsAt({"matrix": table}, where), "matrix", x).square().sum()

    compiled = torch.compile(value, backend="aot_eager", fullgraph=True)
    found, wanted = compiled(table, where, x), value(table, where, x)
    torch.testing.assert_close(found, wanted)
    for ours, theirs in zip(*(torch.autograd.grad(one, [table, x]) for one in (found, wanted)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_a_second_derivative_is_refused() -> None:
    matrix, x = (values.requires_grad_() for values in drawn(3, 4, 5, False, 0))
    (gradient,) = torch.autograd.grad(applied(matrix, x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        gradient.sum().backward()


def test_the_operator_keeps_to_the_rules_of_pytorch() -> None:
    matrix, x = (values.requires_grad_() for values in drawn(3, 4, 5, False, 0))
    torch.library.opcheck(_registered, (matrix, None, None, x, False))
    table, x = (values.requires_grad_() for values in drawn(3, 4, 5, True, 0))
    where = torch.tensor([2, 0, 2])
    torch.library.opcheck(_registered, (table, where, ordered(where, len(table)), x, True))
