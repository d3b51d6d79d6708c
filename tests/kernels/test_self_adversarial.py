"""The self-adversarial loss in one pass against its formula in plain PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import softplus

from examples import at_most
from murp import threads
from murp.kernels.self_adversarial import _registered, mean_loss


def plain(scores: Tensor, temperature: float) -> Tensor:
    true, false = scores[:, 0], scores[:, 1:]
    weights = (temperature * false.detach()).softmax(1)
    return (softplus(-true, threshold=40) + (weights * softplus(false, threshold=40)).sum(1)).mean() / 2


def drawn(size: int, negatives: int, seed: int, spread: float = 3.0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return spread * torch.randn(size, 1 + negatives, dtype=torch.float64, generator=draw)


@settings(max_examples=at_most(40), deadline=None)
@given(
    size=st.integers(1, 40),
    negatives=st.integers(0, 70),
    temperature=st.sampled_from([0.0, 0.5, 2.0]),
    spread=st.sampled_from([1e-6, 3.0, 300.0]),
    seed=st.integers(0, 2**16),
)
def test_value_and_gradient_are_those_of_the_formula(
    size: int, negatives: int, temperature: float, spread: float, seed: int
) -> None:
    given = drawn(size, negatives, seed, spread).requires_grad_()
    found = []
    for way in (mean_loss, plain):
        value = way(given, temperature)
        found.append([value, *torch.autograd.grad(3 * value, given)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-11, atol=1e-14)


def test_float32_is_as_near_as_its_numbers() -> None:
    exact = drawn(50, 250, 0)
    given = exact.float().requires_grad_()
    value = mean_loss(given, 0.5)
    torch.testing.assert_close(value.double(), plain(exact, 0.5), rtol=1e-6, atol=0)
    leaf = exact.clone().requires_grad_()
    (wanted,) = torch.autograd.grad(plain(leaf, 0.5), leaf)
    (found,) = torch.autograd.grad(value, given)
    torch.testing.assert_close(found.double(), wanted, rtol=2e-5, atol=1e-12)


def test_rows_that_lie_apart_and_those_that_are_not_numbers() -> None:
    given = drawn(6, 9, 1)
    torch.testing.assert_close(mean_loss(given.T.contiguous().T, 0.5), mean_loss(given, 0.5))
    given[3, 4] = torch.nan
    assert bool(mean_loss(given, 0.5).isnan())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_threads_change_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    given = drawn(100, 33, 0).to(dtype).requires_grad_()
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        value = mean_loss(given, 0.5)
        found.append([value, *torch.autograd.grad(value, given)])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_it_can_be_differentiated_once_and_the_operator_keeps_to_the_rules() -> None:
    given = drawn(4, 5, 0).requires_grad_()
    (gradient,) = torch.autograd.grad(mean_loss(given, 0.5), given, create_graph=True)
    with pytest.raises(RuntimeError, match=r"does not require grad|once, not twice"):
        torch.autograd.grad(gradient.sum(), given)
    rules = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(_registered, (given, 0.5), test_utils=rules)
