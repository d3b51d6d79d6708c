"""What a step sees: every triple once an epoch, uniform negatives, nothing remembered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from murp.training.sampler import Sampler


def sampler(triples: int, batch_size: int = 4, entities: int = 50, negatives: int = 3, seed: int = 0) -> Sampler:
    rows = np.arange(3 * triples, dtype=np.int32).reshape(triples, 3)
    cpu = torch.device("cpu")
    return Sampler(rows, entities, batch_size=batch_size, negatives=negatives, seed=seed, device=cpu)


@settings(max_examples=40, deadline=None)
@given(triples=st.integers(1, 3000), batch_size=st.integers(1, 300), epoch=st.integers(0, 5))
def test_an_epoch_is_every_triple_once(triples: int, batch_size: int, epoch: int) -> None:
    source = sampler(triples, batch_size)
    chunks = [source.chunk(epoch, index) for index in range(source.chunks)]
    assert sum(chunk.steps for chunk in chunks) == source.steps
    assert sum(chunk.triples for chunk in chunks) == triples
    heads = torch.cat([chunk.positives[:, :, 0].flatten() for chunk in chunks])
    assert sorted(heads.tolist()) == list(range(0, 3 * triples, 3))
    for chunk in chunks:
        assert chunk.draw().shape == (*chunk.positives.shape[:2], 3)


def test_order_changes_with_epoch_and_seed_and_is_not_the_files() -> None:
    orders = [
        sampler(500, seed=seed).chunk(epoch, 0).positives[:, :, 0].flatten().tolist()
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert all(a != b for i, a in enumerate(orders) for b in orders[:i])
    assert all(order != sorted(order) for order in orders)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("triples", [1, 2, 1000, 100_003])
def test_32_bits_give_the_order_that_64_give(triples: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that were begun with 64 bits go on as they would have."""
    place = torch.device(device)
    rows = np.arange(3 * triples, dtype=np.int32).reshape(triples, 3)
    options: dict[str, Any] = {"batch_size": 2 * triples, "negatives": 1, "seed": 2**40, "device": place}
    narrow, wide = Sampler(rows, 9, **options), Sampler(rows, 9, **options)
    found = narrow.chunk(3, 0).positives
    monkeypatch.setattr("murp.training.sampler.NARROW", 0)
    assert torch.equal(wide.chunk(3, 0).positives, found)
    assert [one.order[1].dtype for one in (narrow, wide) if one.order] == [torch.int32, torch.int64]


def test_a_chunk_depends_on_nothing_but_its_position() -> None:
    """The condition for resuming exactly: asking in another order gives the same triples and negatives."""
    forwards, backwards = sampler(5000, batch_size=2), sampler(5000, batch_size=2)
    positions = [(epoch, index) for epoch in range(2) for index in range(forwards.chunks)]
    ahead = {position: forwards.chunk(*position) for position in positions}
    for position in reversed(positions):
        ours, theirs = ahead[position], backwards.chunk(*position)
        assert torch.equal(ours.positives, theirs.positives)
        assert torch.equal(ours.draw(), theirs.draw())


def test_negatives_are_uniform() -> None:
    """χ² over 20 entities: 19 degrees of freedom, far below its 1 - 10⁻⁶ quantile (about 66)."""
    source = sampler(2560, batch_size=10, entities=20, negatives=50)
    drawn = source.chunk(0, 0).draw().flatten()
    counts = torch.bincount(drawn, minlength=20).double()
    expected = len(drawn) / 20
    assert len(counts) == 20
    assert float(((counts - expected) ** 2 / expected).sum()) < 66


@pytest.mark.gpu
def test_the_gpu_draws_repeatably_too() -> None:
    rows = np.arange(3000, dtype=np.int32).reshape(1000, 3)
    cuda = torch.device("cuda")
    a, b = (Sampler(rows, 50, batch_size=4, negatives=3, seed=0, device=cuda).chunk(1, 0) for _ in range(2))
    assert torch.equal(a.positives, b.positives)
    assert torch.equal(a.draw(), b.draw())


def test_a_chunk_drawn_ahead_is_the_chunk() -> None:
    ahead, asked = sampler(1000, batch_size=3), sampler(1000, batch_size=3)
    for epoch in range(2):
        for index in range(ahead.chunks):
            ours, theirs = ahead.chunk(epoch, index), asked.chunk(epoch, index)
            ahead.prefetch(epoch, index + 1)
            assert torch.equal(ours.positives, theirs.positives)
            assert ours.seed == theirs.seed
