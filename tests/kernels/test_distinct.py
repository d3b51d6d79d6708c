"""Which rows are equal, against NumPy's sorting of their bytes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp.kernels.numba_distinct import distinct_rows

numbers = st.sampled_from([0.0, -0.0, 1.0, 2.0, 1e-40, float("inf"), float("nan")])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=at_most(60), deadline=None)
@given(data=st.data(), dim=st.integers(1, 3), with_own=st.booleans())
def test_rows_of_equal_bits(dtype: torch.dtype, data: st.DataObject, dim: int, with_own: bool) -> None:
    rows = data.draw(st.lists(st.lists(numbers, min_size=dim + 1, max_size=dim + 1), min_size=1, max_size=40))
    every = torch.tensor(rows, dtype=dtype)
    x, own = every[:, :dim].contiguous(), every[:, dim] if with_own else None
    first, place = distinct_rows(x, own)
    whole = np.ascontiguousarray(every[:, : dim + with_own].numpy())
    _, expected = np.unique(whole.view(f"V{whole.itemsize * whole.shape[1]}").reshape(-1), return_index=True)
    assert first.tolist() == sorted(expected.tolist())
    assert whole[first.numpy()][place.numpy()].tobytes() == whole.tobytes()


def test_many_rows_with_the_same_words_in_another_order() -> None:
    """A hash that only adds words would find them all in one place: this would take minutes."""
    x = torch.stack([torch.roll(torch.arange(200.0), shift) for shift in range(200)]).repeat(40, 1)
    first, place = distinct_rows(x, None)
    assert first.tolist() == list(range(200))
    assert place.tolist() == list(range(200)) * 40
