"""How many of PyTorch's threads a step on the CPU has: the bits of a run must not depend on how busy the machine is."""

from __future__ import annotations

import pytest
import torch

from murp import registry, threads
from murp.config import Config
from murp.engines import Chunk, Task
from murp.engines.step import CUT, _loss_of_scores
from murp.engines.torch_engine import WORTH_A_THREAD, TorchEngine
from murp.models import MuRE, from_config


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


class Foreign(MuRE):
    """A model of another package: it may use functions that have other bits where PyTorch cuts a tensor."""


def test_models_of_others_have_a_number_that_follows_from_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(used(f"{__name__}:Foreign", 4, monkeypatch, dim=4)) == {1}


@pytest.mark.parametrize("name", ["bernoulli", "rank", "margin", "softmax", "self-adversarial"])
def test_a_loss_has_the_same_bits_on_one_thread_and_on_two(name: str) -> None:
    """PyTorch cuts the scores, here at a place between two vectors, and ends a part as it ends a tensor."""
    batch, candidates = 500, 67
    assert batch * candidates >= CUT
    assert batch * candidates // 2 % 8
    objective = Config(objective=name).part("objective")
    draw = torch.Generator().manual_seed(0)
    before = torch.get_num_threads()
    try:
        for _ in range(5):
            scores = torch.randn(batch, candidates, generator=draw).requires_grad_()
            found = []
            for number in (1, 2):
                threads.use_torch(number)
                loss = _loss_of_scores(objective, scores)
                found.append((loss, *torch.autograd.grad(3 * loss, scores)))
            assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    finally:
        threads.use_torch(before)
    plain = objective.loss(scores)
    torch.testing.assert_close(found[0], (plain, *torch.autograd.grad(3 * plain, scores)))


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
