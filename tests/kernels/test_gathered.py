"""Products with rows that are read where they lie, against rows that are copied first."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp import threads
from murp.kernels import gathered, numba_gathered


def copied(table: Tensor, indices: Tensor, vectors: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Tensor]:
    rows = table[indices]
    return tuple((rows * x[:, None]).sum(-1) for x in vectors), (rows * rows).sum(-1)


def drawn(
    entities: int, size: int, width: int, dim: int, number: int, seed: int
) -> tuple[Tensor, Tensor, list[Tensor]]:
    draw = torch.Generator().manual_seed(seed)
    table = torch.randn(entities, dim, dtype=torch.float64, generator=draw)
    indices = torch.randint(entities, (size, width), generator=draw)
    return table, indices, [torch.randn(size, dim, dtype=torch.float64, generator=draw) for _ in range(number)]


def compare(table: Tensor, indices: Tensor, vectors: list[Tensor]) -> None:
    leaves = [values.requires_grad_() for values in (table, *vectors)]
    found = []
    for way in (gathered.products, copied):
        products, square = way(leaves[0], indices, tuple(leaves[1:]))
        value = sum((product.sin().sum() for product in products), square.cos().sum())
        found.append([*products, square, *torch.autograd.grad(value, leaves)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-11)


CUDA = pytest.param("cuda", marks=pytest.mark.gpu)


@pytest.fixture(params=["cpu", "triton", CUDA])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where tensors lie; "triton" is the interpreter on the CPU."""
    if request.param == "triton":
        if torch.cuda.is_available():
            pytest.skip("where there is a GPU the kernels run on it")
        triton_gathered = pytest.importorskip("murp.kernels.triton_gathered")
        monkeypatch.setattr(gathered, "_kernels", lambda device: triton_gathered)
        return "cpu"
    return str(request.param)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1, 1), (9, 5, 20, 40, 1), (4, 3, 70, 65, 2), (50, 2, 3, 3, 3)])
def test_every_path_has_the_values_and_gradients_of_copied_rows(
    shape: tuple[int, int, int, int, int], path: str
) -> None:
    table, indices, vectors = drawn(*shape, seed=0)
    compare(table.to(path), indices.to(path), [x.to(path) for x in vectors])


@settings(max_examples=at_most(40), deadline=None)
@given(
    entities=st.integers(1, 40),  # few, so that rows repeat
    size=st.integers(1, 9),
    width=st.integers(1, 20),
    dim=st.sampled_from([1, 3, 8, 17, 40]),
    number=st.integers(1, 3),
    seed=st.integers(0, 2**16),
)
def test_values_and_gradients_are_those_of_copied_rows(
    entities: int, size: int, width: int, dim: int, number: int, seed: int
) -> None:
    compare(*drawn(entities, size, width, dim, number, seed))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_number_of_threads_changes_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row's occurrences are added in their order by one thread."""
    table, indices, (x, y) = drawn(500, 60, 70, 40, 2, 0)
    table, x, y = (values.to(dtype).requires_grad_() for values in (table, x, y))
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        products, square = gathered.products(table, indices, (x, y))
        value = sum((product.square().sum() for product in products), square.sum())
        found.append([*products, square, *torch.autograd.grad(value, [table, x, y])])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_rows_without_occurrences_have_no_gradient() -> None:
    table, _, (x,) = drawn(9, 4, 5, 2, 1, 1)
    indices = torch.tensor([[3, 3, 8, 3, 0]] * 4)
    of, none = torch.ones(4, 5, dtype=torch.float64), torch.zeros(4, 5, dtype=torch.float64)
    expected = torch.zeros_like(table).index_add_(0, indices.flatten(), x.repeat_interleave(5, 0))
    found, _ = numba_gathered.back([of, none], [x], table, indices)
    torch.testing.assert_close(found, expected)
