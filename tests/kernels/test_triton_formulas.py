"""Triton's kernels of formulas: elementary functions, and means over all entities, against PyTorch.

In the interpreter, or on a GPU with ``-m gpu``. tests/objectives/test_every_score.py has the formulas of all models.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from test_formulas import FUNCTIONS, KINDS, ball, ball_parts, both_types, branches, plain, powers
from torch import Tensor

from murp.kernels import formula_means
from murp.kernels.formula_means import formula_mean
from murp.kernels.formulas import Formula, traced

triton_formulas = pytest.importorskip("murp.kernels.triton_formulas")
pytestmark = [
    pytest.mark.triton,
    # Triton's interpreter computes the padding of a block as well; what comes of it is not stored.
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Of a GPU: its functions and quotients are off by two or three bits, and three products of tf32 by one.
BAR = {torch.float32: 2e-6 if DEVICE == "cuda" else 5e-7, torch.float64: 1e-14}


@pytest.fixture(autouse=True)
def by_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formula_means, "_found", triton_formulas.reduced)


def values(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The values of a function: the derivatives of f(x) p by p, of queries whose number is x, and whose p is 0."""
    formula = traced(lambda p, own: function(own) * p, 2, x.dtype)
    assert formula is not None
    q = torch.zeros(len(x), 1, dtype=x.dtype, device=DEVICE, requires_grad=True)
    assert triton_formulas.fits(formula, [q])
    one = torch.ones(1, 1, dtype=x.dtype, device=DEVICE)
    (found,) = torch.autograd.grad(formula_mean(formula, "mean", [q], [x.to(DEVICE)], [one], []), q)
    return len(x) * found[:, 0].cpu()


@both_types
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_pytorchs(name: str, dtype: torch.dtype) -> None:
    """Of numbers near 0 and near the ends of what the function takes; results must fit the mean that divides them."""
    numbers = [number for number in FUNCTIONS[name] if abs(number) < 100 or name not in ("sin", "cos")]
    x = torch.tensor(numbers, dtype=dtype)
    wanted = getattr(torch, name)(x.double())
    x, wanted = (of[wanted.abs() < 1e30] for of in (x, wanted))
    found = values(getattr(torch, name), x).double()
    # exp has an error for each bit of its argument's whole part on a GPU; sin and cos have π's near their zeros.
    bar = BAR[dtype] * (1 + x.double().abs() / 4)
    assert bool(((found - wanted).abs() <= bar * wanted.abs() + 1e-30 + bar * 0.1 * (name in ("sin", "cos"))).all())


@pytest.mark.parametrize("function", [branches, powers], ids=["branches", "powers"])
@both_types
def test_a_function_of_two_numbers_is_pytorchs(function: Any, dtype: torch.dtype) -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.rand(40, dtype=torch.float64, generator=draw).to(dtype) + 0.05 for _ in range(2))
    formula = traced(lambda p, a, b: function(a, b) * p, 3, dtype)
    assert formula is not None
    q = torch.zeros(40, 1, dtype=dtype, device=DEVICE, requires_grad=True)
    given = [x.to(DEVICE), y.to(DEVICE)]
    value = formula_mean(formula, "mean", [q], given, [torch.ones(1, 1, dtype=dtype, device=DEVICE)], [])
    (found,) = torch.autograd.grad(value, q)
    torch.testing.assert_close(40 * found[:, 0].cpu(), function(x, y), rtol=20 * BAR[dtype], atol=20 * BAR[dtype])


def test_what_is_not_a_number_stays_so_in_every_function() -> None:
    for name in FUNCTIONS:
        found = values(getattr(torch, name), torch.tensor([0.5, math.nan]))
        assert bool(found[1].isnan()), name


# --- means


@pytest.fixture(scope="module")
def of_ball() -> dict[torch.dtype, Formula]:
    found = {dtype: traced(ball, 8, dtype) for dtype in (torch.float32, torch.float64)}
    return {dtype: formula for dtype, formula in found.items() if formula is not None}


def placed(parts: tuple[list[Tensor], ...]) -> tuple[list[Tensor], ...]:
    return tuple([part.detach().to(DEVICE).requires_grad_() for part in group] for group in parts)


def mean(formula: Formula, kind: Any, parts: tuple[list[Tensor], ...], shares: Tensor | None = None) -> Tensor:
    value: Tensor = formula_mean(formula, kind, *parts, shares)
    return value


@both_types
@pytest.mark.parametrize("kind", KINDS)
# Less than a tile, some tiles and splits of which the last are not whole; as many vectors as products, or one.
@pytest.mark.parametrize(("size", "number", "apart"), [(1, 1, False), (6, 40, True), (35, 130, False), (64, 64, True)])
def test_a_mean_is_that_of_all_scores(
    kind: str, size: int, number: int, apart: bool, dtype: torch.dtype, of_ball: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(triton_formulas, "_PROGRAMS", 5)
    parts = placed(ball_parts(size, number, dtype))
    if apart:
        parts = parts[0], parts[1], [*parts[2], parts[2][0].detach().clone().requires_grad_()], parts[3]
    value, expected = mean(of_ball[dtype], kind, parts), of_all_scores(kind, parts)
    bar = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(value, expected, rtol=bar, atol=bar)
    given = [part for group in parts for part in group]
    found, wanted = (torch.autograd.grad(2 * of, given) for of in (value, expected))
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=10 * bar, atol=bar * float(theirs.abs().max()))
    with torch.no_grad():
        torch.testing.assert_close(mean(of_ball[dtype], kind, parts), value, rtol=0, atol=0)


def of_all_scores(kind: str, parts: tuple[list[Tensor], ...], shares: Tensor | None = None) -> Tensor:
    """As :func:`plain`, with a vector for each product."""
    queries, ours, vectors, theirs = parts
    vectors = vectors if len(vectors) > 1 else vectors * len(queries)
    products = (q @ v.T for q, v in zip(queries, vectors, strict=True))
    scores = ball(*products, *(number[:, None] for number in ours), *theirs)
    if kind == "mean":
        return scores.mean()
    if kind == "softplus":
        return torch.logaddexp(scores, torch.zeros_like(scores)).mean()
    return scores.logsumexp(1).mean() if shares is None else scores.logsumexp(1) @ shares


def test_vectors_may_differ_in_their_length() -> None:
    """As those of the spaces of a product do."""
    draw = torch.Generator().manual_seed(3)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=draw).to(DEVICE).requires_grad_()

    def ending(a: Tensor, b: Tensor) -> Tensor:
        return a.tanh() * b

    formula = traced(ending, 2, torch.float64)
    assert formula is not None
    queries, vectors = [normal(7, 3), normal(7, 20)], [normal(50, 3), normal(50, 20)]
    value = formula_mean(formula, "log_sum_exp", queries, [], vectors, [])
    expected = ending(*(q @ v.T for q, v in zip(queries, vectors, strict=True))).logsumexp(1).mean()
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    given = [*queries, *vectors]
    for ours, theirs in zip(torch.autograd.grad(value, given), torch.autograd.grad(expected, given), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


def test_a_weighted_mean_is_that_of_the_definition(of_ball: Any) -> None:
    parts = placed(ball_parts(6, 50, torch.float64))
    shares = torch.tensor([0.5, 0.2, 0.1, 0.1, 0.09, 0.01], dtype=torch.float64, device=DEVICE)
    value = mean(of_ball[torch.float64], "log_sum_exp", parts, shares)
    expected = of_all_scores("log_sum_exp", parts, shares)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    given = [part for group in parts for part in group]
    for ours, theirs in zip(torch.autograd.grad(value, given), torch.autograd.grad(expected, given), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_large_scores_do_not_overflow(kind: str, of_ball: Any) -> None:
    for at in (90.0, -200.0, 4000.0):
        parts = ball_parts(6, 50, torch.float32)
        parts = placed((parts[0], [*parts[1][:3], torch.full((6,), at)], parts[2], parts[3]))
        found = mean(of_ball[torch.float32], kind, parts)
        torch.testing.assert_close(found, plain(kind, parts), rtol=1e-5, atol=1e-5)
        assert all(bool(one.isfinite().all()) for one in torch.autograd.grad(found, parts[0]))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_a_number_stays_so(kind: str, of_ball: Any) -> None:
    parts = placed(ball_parts(6, 50, torch.float32))
    with torch.no_grad():
        parts[2][0][7, 1] = torch.nan
    value = mean(of_ball[torch.float32], kind, parts)
    assert bool(value.isnan())
    (by_x,) = torch.autograd.grad(value, parts[0][0])
    assert bool(by_x.isnan().any(1).all())


def test_an_entity_that_is_no_candidate_has_no_weight(of_ball: Any) -> None:
    parts = placed(ball_parts(6, 50, torch.float32))
    with torch.no_grad():
        parts[3][1][10] = -math.inf
    value = mean(of_ball[torch.float32], "log_sum_exp", parts)
    torch.testing.assert_close(value, plain("log_sum_exp", parts), rtol=1e-5, atol=1e-5)
    (by_v,) = torch.autograd.grad(value, parts[2])
    assert bool((by_v[10] == 0).all())
    assert bool(by_v.isfinite().all())


def test_the_same_numbers_give_the_same_bits(of_ball: Any) -> None:
    parts = placed(ball_parts(40, 300, torch.float32))
    given, found = [part for group in parts for part in group], []
    for _ in range(2):
        value = mean(of_ball[torch.float32], "log_sum_exp", parts)
        found.append([value, *torch.autograd.grad(value, given)])
    assert all(torch.equal(one, again) for one, again in zip(*found, strict=True))


def test_what_the_kernels_do_not_know_is_left_to_others(of_ball: Any) -> None:
    formula = of_ball[torch.float32]
    assert triton_formulas.fits(formula, [torch.zeros(4, 200)] * 2)
    assert not triton_formulas.fits(formula, [torch.zeros(4, 300)] * 2)  # too wide
    assert not triton_formulas.fits(formula, [torch.zeros(4, 40, dtype=torch.float16)] * 2)
    other = Formula(formula.inputs, (*formula.steps, ("digamma", ((True, 0.0),))), formula.outputs)
    assert not triton_formulas.fits(other, [torch.zeros(4, 40)] * 2)


@pytest.mark.parametrize("part", ["name", "number", "place", "output"])
def test_no_text_becomes_code(part: str) -> None:
    """What is compiled is made of a table of operations and of numbers."""
    text: Any = "__import__('os')"
    step = (text if part == "name" else "exp", ((True, text if part == "place" else 0.0),))
    steps = [step, ("add", ((True, 1.0), (False, text if part == "number" else 2.0)))]
    outputs = ((False, text) if part == "output" else (True, 2.0), None)
    with pytest.raises((KeyError, ValueError)):
        triton_formulas.kernels(Formula(1, tuple(steps), outputs), (1, 0, 1, 0))
