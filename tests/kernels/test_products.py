"""Inner products, sums and elementary functions: laws of their bits, against exact arithmetic.

Floats are compared bit for bit here. That holds on every processor because every operation of a kernel is one that
IEEE 754 defines to the bit, in an order that is written down; no flag lets the compiler change it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp import threads
from murp.compiling import kernel
from murp.kernels.intrinsics import add_difference, combine, fill, product, squared_difference, sums
from murp.kernels.products import inner_products, squared_norms

dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
numbers = st.floats(-1e3, 1e3, width=32)


def fma(a: Any, b: Any, c: Any) -> Any:
    """ab + c, computed exactly and rounded once: to a double by Python, to a single number by way of its neighbours."""
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if isinstance(a, np.float64):
        return np.float64(float(exact))
    near = np.float32(float(exact))  # rounded twice: perhaps a neighbour of the right one
    candidates = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    return min(candidates, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.int32)) & 1))


def chain(x: np.ndarray, y: np.ndarray) -> Any:
    total = x.dtype.type(0)
    for a, b in zip(x, y, strict=True):
        total = fma(a, b, total)
    return total


@dtypes
@settings(max_examples=at_most(30), deadline=None)
@given(points=st.integers(1, 8), rows=st.integers(1, 40), dim=st.integers(1, 20), seed=st.integers(0, 2**31))
def test_a_cell_is_the_chain_of_its_point_and_its_row(
    dtype: torch.dtype, points: int, rows: int, dim: int, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, v = (torch.randn(n, dim, dtype=dtype, generator=draw) for n in (points, rows))
    found = inner_products(x, v).numpy()
    for b, n in [(0, 0), (points - 1, rows - 1), (seed % points, seed % rows)]:
        assert found[b, n] == chain(x[b].numpy(), v[n].numpy())
    assert squared_norms(v)[-1].numpy() == chain(v[-1].numpy(), v[-1].numpy())


@dtypes
@settings(max_examples=at_most(60), deadline=None)
@given(
    points=st.integers(1, 30), rows=st.integers(1, 3000), dim=st.integers(1, 130), number=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)  # fmt: skip
def test_neither_place_nor_shape_nor_threads_change_a_bit(
    dtype: torch.dtype, points: int, rows: int, dim: int, number: int, seed: int
) -> None:
    draw = torch.Generator().manual_seed(seed)
    x, v = (torch.randn(n, dim, dtype=dtype, generator=draw) for n in (points, rows))
    alone = inner_products(x[-1:], v)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "count", lambda: number)
        patch.setattr(threads, "_WORTH_A_THREAD", 1)
        room = torch.full((points + 2, rows), torch.nan, dtype=dtype)
        together = inner_products(x, v, room)
    assert torch.equal(together[-1:], alone)
    assert together.data_ptr() == room.data_ptr()
    assert bool(room[points:].isnan().all())
    order = torch.randperm(rows, generator=draw)
    assert torch.equal(inner_products(x, v[order]), together[:, order])


@dtypes
def test_products_are_those_of_the_definition(dtype: torch.dtype) -> None:
    x, v = torch.randn(13, 43, dtype=dtype), torch.randn(700, 43, dtype=dtype)
    # A chain of d operations is off by at most d roundings of the sum of the terms' sizes.
    bound = 43 * torch.finfo(dtype).eps * (x.double().abs() @ v.double().abs().T)
    assert bool(((inner_products(x, v).double() - x.double() @ v.double().T).abs() <= bound).all())


@dtypes
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_products_of_rows_on_a_gpu_depend_on_the_row_alone(dtype: torch.dtype, device: str) -> None:
    """Without one, through the interpreter. Rows of 129 numbers begin at addresses of every kind."""
    triton_products = pytest.importorskip("murp.kernels.triton_products")
    for rows, dim in ((1, 1), (70, 129), (300, 150), (64, 32)):
        draw = torch.Generator().manual_seed(rows)
        x, y = (torch.randn(rows, dim, dtype=dtype, generator=draw).to(device) for _ in range(2))
        found, moved, few = x.new_empty(rows), x.new_empty(rows), x.new_empty(min(rows, 7))
        order = torch.randperm(rows, generator=draw).to(device)
        triton_products.row_products(x, y, found)
        triton_products.row_products(x[order], y[order], moved)
        triton_products.row_products(x[-len(few) :], y[-len(few) :], few)
        assert torch.equal(moved, found[order])
        assert torch.equal(few, found[-len(few) :])
        bound = dim * torch.finfo(dtype).eps * (x.double() * y.double()).abs().sum(1)
        assert bool(((found.double() - (x.double() * y.double()).sum(1)).abs() <= bound).all())


def test_nothing_times_nothing_is_nothing() -> None:
    assert inner_products(torch.zeros(0, 3), torch.zeros(5, 3)).shape == (0, 5)
    assert inner_products(torch.zeros(2, 3), torch.zeros(0, 3)).shape == (2, 0)


def test_on_a_cpu_a_product_does_without_triton(no_triton_products: None) -> None:
    """Where it is there, its interpreter gives the same bits, only later, so that no other test shows it."""
    x, v = torch.ones(2, 3), torch.ones(5, 3)
    assert torch.equal(inner_products(x, v), torch.full((2, 5), 3.0))
    assert inner_products(x[:0], v).shape == (0, 5)
    assert inner_products(x, v[:0]).shape == (2, 0)
    assert torch.equal(squared_norms(v), torch.full((5,), 3.0))


_three = sums(product(0, 1), product(2, 2), squared_difference(0, 2))


@kernel
def _of_rows(x: Any, y: Any, z: Any) -> Any:
    return _three((x, y, z))


@kernel
def _changed(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any) -> None:
    combine((x, y, z), (a, b, c))
    add_difference((y, x, z), a)
    fill(z, b)


def lanes(terms: list[tuple[Any, Any]]) -> Any:
    """The sum of products in the order that :mod:`murp.kernels.intrinsics` writes down."""
    zero = type(terms[0][0])(0)
    whole = len(terms) // 8 * 8
    lane = [zero] * 8
    for place, (a, b) in enumerate(terms[:whole]):
        lane[place % 8] = fma(a, b, lane[place % 8])
    rest = zero
    for a, b in terms[whole:]:
        rest = fma(a, b, rest)
    fours = [lane[i] + lane[i + 4] for i in range(4)]
    twos = [fours[i] + fours[i + 2] for i in range(2)]
    return (twos[0] + twos[1]) + rest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=at_most(40), deadline=None)
@given(rows=st.lists(st.tuples(numbers, numbers, numbers), min_size=1, max_size=37), factors=st.tuples(*[numbers] * 3))
def test_rows_are_summed_and_combined_in_the_order_that_is_written_down(
    dtype: type, rows: list[tuple[float, float, float]], factors: tuple[float, float, float]
) -> None:
    x, y, z = (np.ascontiguousarray(column) for column in np.array(rows, dtype=dtype).T)
    differences = [a - c for a, c in zip(x, z, strict=True)]
    expected = [
        lanes(list(zip(x, y, strict=True))),
        lanes(list(zip(z, z, strict=True))),
        lanes([(d, d) for d in differences]),
    ]
    assert list(_of_rows(x, y, z)) == expected
    a, b, c = (dtype(factor) for factor in factors)
    combined = [fma(c, zj, fma(b, yj, a * xj)) for xj, yj, zj in zip(x, y, z, strict=True)]
    shifted = [fma(a, cj - zj, yj) for cj, yj, zj in zip(combined, y, z, strict=True)]
    _changed(x, y, z, a, b, c)
    assert x.tolist() == combined
    assert y.tolist() == shifted
    assert z.tolist() == [b] * len(z)
