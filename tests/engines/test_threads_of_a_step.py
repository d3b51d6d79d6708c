"""How many of PyTorch's threads a step on the CPU has: the bits of a run must not depend on how busy the machine is."""

from __future__ import annotations

import pytest
import torch

from murp import registry, threads
from murp.config import Config
from murp.engines import Chunk, Task
from murp.engines.torch_engine import WORTH_A_THREAD, TorchEngine
from murp.models import from_config


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


@pytest.mark.parametrize(("batch", "number"), [(64, 1), (5000, 3)])
def test_scores_of_all_entities_are_not_counted(batch: int, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have threads of their own; PyTorch computes with the rows of the batch and of the entities."""
    monkeypatch.setenv("MURP_NUM_THREADS", "8")
    monkeypatch.setattr("murp.engines.torch_engine.WORTH_A_THREAD", 2**15)
    config = Config(model="distmult", objective="one-vs-all", dim=16)
    engine = TorchEngine(Task.of(config, from_config(config, 1000, 2).initialise(0)))
    found: list[int] = []
    monkeypatch.setattr(threads, "use_torch", found.append)
    engine.run([Chunk(torch.zeros(1, batch, 3, dtype=torch.int64), 1000, 0, seed=0)], [0.1])
    assert found[0] == number  # 1 + (64 + 1,000) · 16 / 2¹⁵, 1 + (5,000 + 1,000) · 16 / 2¹⁵
