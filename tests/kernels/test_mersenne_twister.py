"""Part of the numbers that PyTorch draws, without the others."""

from __future__ import annotations

import pytest
import torch

from murp.engines import Chunk
from murp.kernels import numba_mersenne_twister


def test_some_of_the_numbers_are_those_that_pytorch_draws() -> None:
    # From the last of these on PyTorch draws in another way, and a chunk leaves it to PyTorch.
    for most in (1, 41_000, numba_mersenne_twister.MOST - 1, numba_mersenne_twister.MOST):
        for steps, batch, each, part in ((3, 20, 5, slice(4, 9)), (2, 90, 50, slice(45, 90)), (2, 5, 3, slice(2, 2))):
            for seed in (0, 2**62 + 7):
                chunk = Chunk(torch.zeros(steps, batch, 3, dtype=torch.int64), most, each, seed)
                drawn = torch.randint(most, (steps, batch, each), generator=torch.Generator().manual_seed(seed))
                assert torch.equal(chunk.draw(), drawn)
                assert torch.equal(chunk.draw(part), drawn[:, part])


def test_another_version_of_pytorch_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then a chunk draws all numbers by PyTorch and keeps its part."""
    chunk = Chunk(torch.zeros(2, 6, 3, dtype=torch.int64), 50, 4, seed=3)
    whole = chunk.draw()
    assert numba_mersenne_twister.agrees()
    monkeypatch.setattr(numba_mersenne_twister, "randint", lambda *given: torch.zeros(2, 2, 4, dtype=torch.int64))
    numba_mersenne_twister.agrees.cache_clear()
    try:
        assert not numba_mersenne_twister.agrees()
        assert torch.equal(chunk.draw(slice(1, 3)), whole[:, 1:3])
    finally:
        numba_mersenne_twister.agrees.cache_clear()
