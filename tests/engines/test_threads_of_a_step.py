"""How many of PyTorch's threads a step on the CPU has: the bits of a run must not depend on how busy the machine is."""

from __future__ import annotations

import pytest
import torch

from murp import registry, threads
from murp.engines.torch_engine import WORTH_A_THREAD, TorchEngine


def used(name: str, batch: int, monkeypatch: pytest.MonkeyPatch, **settings: int) -> list[int]:
    """The numbers of threads of 24 steps on a machine where the quickest number changes all the time."""
    monkeypatch.setenv("MURP_NUM_THREADS", "8")
    engine = TorchEngine(registry.find("model", name)(50, 4, **settings).initialise(0))
    clock = iter(range(10**6))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock) ** 2 % 97)
    found: list[int] = []
    monkeypatch.setattr(threads, "use_torch", found.append)
    facts = torch.zeros(24, batch, 3, dtype=torch.int64)
    engine.steps(facts, torch.zeros(24, batch, 5, dtype=torch.int64), 0.1)
    return found[:-1]  # the last is the number of before


def test_rows_by_themselves_have_as_many_as_are_quickest(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(set(used("mure", 4, monkeypatch, dim=4))) > 1


def test_sums_over_a_batch_have_a_number_that_follows_from_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch cuts such a sum among its threads, and rounds it otherwise for another number of them."""
    assert set(used("tucker", 4, monkeypatch, dim=4)) == {1}
    monkeypatch.setattr("murp.engines.torch_engine.WORTH_A_THREAD", WORTH_A_THREAD // 2**12)
    assert set(used("tucker", 4, monkeypatch, dim=8)) == {3}
