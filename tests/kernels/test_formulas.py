"""Formulas: what is recorded, elementary functions and means over all entities, against PyTorch and mpmath.

tests/objectives/test_every_score.py compares the formula of every model's ending with the ending.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from murp import threads
from murp.geometry import poincare
from murp.kernels import formula_means
from murp.kernels.formula_means import formula_mean
from murp.kernels.formulas import Formula, traced
from murp.kernels.numba_angles import quarter_turns
from murp.kernels.numba_formulas import GIVEN, loops

both_types = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
KINDS = ["log_sum_exp", "softplus", "mean"]
LANES = 16

# Each function with numbers that it takes, near 0 and near the ends of what it takes among them.
ANY = [0.0, 1e-30, -1e-30, 1e-5, -1e-5, 0.3, -0.7, 1.0, -1.5, 3.0, 20.0, -20.0]
LAST = [88.4, 88.5, 88.7, 44.2, 44.25, -44.3, 354.8, 709.2, 709.5]  # where exp ends; what is beyond is left out
# Angles of many turns, at 2¹⁶ and beyond; the next to last is the double nearest to a multiple of π/2.
FAR = [65535.99, 65536.0, -65536.01, 102943.7, 1e6, -3.3e9, 1e22, -(2.0**100), 3e38]
FAR += [6381956970095103 * 2.0**797, -1.7e308]
FUNCTIONS: dict[str, list[float]] = {
    "exp": [*ANY, 80.0, -80.0, *LAST],
    "expm1": [*ANY, 80.0, -80.0, *LAST],
    "sinh": [*ANY, 80.0, -80.0, *LAST],
    "cosh": [*ANY, 80.0, -80.0, *LAST],
    "tanh": [*ANY, 80.0, -80.0, *LAST],
    "sigmoid": [*ANY, 60.0, -60.0],
    "log": [1e-37, 1e-5, 0.3, 0.7072, 0.70710678, 1.0, 1.0000001, 1.5, 3.0, 1e5, 1e30],
    "log1p": [0.0, 1e-30, -1e-30, 1e-6, -1e-6, -0.3, -0.9, 0.4, 0.5, 3.0, 1e5, 1e30],
    "asinh": [*ANY, 1e5, -1e12, 1e30],
    "acosh": [1.0, 1.00001, 1.5, 30.0, 1e5, 1e12, 1e30],
    "atanh": [0.0, 1e-20, 1e-5, -0.3, 0.5, 0.9, -0.9999],
    "sin": [*ANY, math.pi, math.pi / 2, -2.0, 100.0, -1000.3, 60000.0, *FAR],
    "cos": [*ANY, math.pi, math.pi / 2, -2.0, 100.0, -1000.3, 60000.0, *FAR],
    "asin": [0.0, 1e-20, 1e-5, -0.3, 0.5, 0.500001, 0.9, -0.9999, 1.0, -1.0],
    "acos": [0.0, 1e-20, 1e-5, -0.3, 0.5, 0.500001, 0.9, -0.9999, 1.0, -1.0],
    "sqrt": [0.0, 1e-30, 0.3, 2.0, 1e30],
    "rsqrt": [1e-30, 0.3, 2.0, 1e30],
    "reciprocal": [1e-30, -0.3, 2.0, 1e30],
}


@cache
def single(name: str, dtype: torch.dtype) -> Callable[[Tensor], Tensor]:
    """The values of one of PyTorch's functions by our loops, for numbers (n)."""
    formula = traced(getattr(torch, name), 1, dtype)
    assert formula is not None, name
    compiled = loops(formula, (1, 0, 0))

    def values(x: Tensor) -> Tensor:
        row = torch.zeros(1, 1, -(-len(x) // LANES) * LANES, dtype=dtype)
        row[0, 0, : len(x)] = x
        out, none = torch.empty_like(row[0]), np.empty((0, 1), row.numpy().dtype)
        compiled.values(row.numpy(), none, none, out.numpy())
        return out[0, : len(x)]

    return values


@both_types
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_that_of_exact_arithmetic(name: str, dtype: torch.dtype) -> None:
    x = torch.tensor(FUNCTIONS[name], dtype=dtype)
    x = x[getattr(torch, name)(x).isfinite()]
    found = single(name, dtype)(x)
    exact = {
        "rsqrt": lambda t: 1 / mpmath.sqrt(t),
        "reciprocal": lambda t: 1 / t,
        "sigmoid": lambda t: 1 / (1 + mpmath.exp(-t)),
    }.get(name, getattr(mpmath, name, None))
    with mpmath.workdps(60):
        for ours, at in zip(found.tolist(), x.tolist(), strict=True):
            wanted = exact(mpmath.mpf(at))  # type: ignore[misc]
            # sin and cos near one of their zeros have the rounding of π besides.
            bar = 4 * torch.finfo(dtype).eps * max(abs(wanted), mpmath.mpf(1e-7) if name in ("sin", "cos") else 0)
            assert abs(ours - wanted) <= bar, (at, ours, wanted)


@both_types
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_ends_of_a_function_are_pytorchs(name: str, dtype: torch.dtype) -> None:
    """Infinity, NaN and what has no value."""
    ends = [math.inf, -math.inf, math.nan, 1e38, -1e38, -1.0, -1.5, 0.0, -0.0, 1.0, 90.0, -90.0, 800.0, -800.0, 1e-42]
    ends += LAST
    x = torch.tensor(ends, dtype=dtype)
    found, wanted = single(name, dtype)(x), getattr(torch, name)(x)
    torch.testing.assert_close(found, wanted, rtol=2e-6, atol=1e-37, equal_nan=True)


@given(st.floats(2.0**16, width=64, allow_infinity=False), st.booleans())
@example(6381956970095103 * 2.0**797, False)
@example(2.0**16, True)
def test_large_angles_are_reduced_exactly(size: float, negative: bool) -> None:
    x = -size if negative else size
    turns, rest = quarter_turns(np.float64(x).view(np.uint64))
    with mpmath.workprec(1400):
        exact = mpmath.mpf(x) * 2 / mpmath.pi
        nearest = mpmath.nint(exact)
        assert turns == int(nearest) % 4
        assert mpmath.almosteq(float(rest), (exact - nearest) * mpmath.pi / 2, rel_eps=2.0**-52)


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=20), st.sampled_from(["exp", "log1p", "sinh", "tanh", "cos"]))
def test_a_function_is_pytorchs_for_any_number(numbers: list[float], name: str) -> None:
    x = torch.tensor(numbers, dtype=torch.float64)
    x = x.abs() if name == "log1p" else x
    function = getattr(torch, name)
    torch.testing.assert_close(single(name, torch.float64)(x), function(x), rtol=1e-14, atol=1e-15)


# --- recording


def in_places(x: Tensor, y: Tensor) -> Tensor:
    product = x * y
    kept = product.clone()
    product.add_(1)
    product.mul_(2).sqrt_()  # changes what the name stands for
    return product * kept.neg_() + torch.empty_like(x).copy_(y)


def branches(x: Tensor, y: Tensor) -> Tensor:
    small = torch.where((x > 0.3) & ~(y >= 0.5) | (x == y), x.clamp(0.1, 0.6), torch.minimum(x, y))
    return small.clamp(max=0.5) + y.clamp_min(0.2) + torch.maximum(x, y).clamp_max(0.7) + x.clamp(y / 2, y)


def powers(x: Tensor, y: Tensor) -> Tensor:
    return (
        x**2
        + y**3
        + x**0.5
        + y**-1
        + x**-0.5
        + y**2.5
        + x**0
        + (2 - x)
        + torch.sub(x, y, alpha=3)
        + torch.rsub(x, y, alpha=2)
    )


def products(x: Tensor, y: Tensor) -> Tensor:
    return torch.addcmul(x, x, y, value=-2) + torch.addcdiv(x, x, y, value=3) - x / y + y / y.detach()


class Written(torch.autograd.Function):
    """x² whose gradient says 5."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x * x

    @staticmethod
    def backward(ctx: Any, of: Tensor) -> Tensor:
        return 5 * of


def by_hand(x: Tensor, y: Tensor) -> Tensor:
    return Written.apply(x) * y  # type: ignore[no-any-return]


def constant_in_one(x: Tensor, y: Tensor) -> Tensor:
    return x.exp() + 1


@both_types
@pytest.mark.parametrize("function", [in_places, branches, powers, products, by_hand, constant_in_one])
def test_a_formula_and_its_derivatives_are_the_functions(function: Any, dtype: torch.dtype) -> None:
    draw = torch.Generator().manual_seed(0)
    x, y = (torch.rand(5, 2 * LANES, dtype=torch.float64, generator=draw).to(dtype) + 0.05 for _ in range(2))
    weights = torch.rand(5, 2 * LANES, dtype=torch.float64, generator=draw).to(dtype)
    formula = traced(function, 2, dtype)
    assert formula is not None
    value, slopes = computed(formula, x, y, weights)
    leaves = [x.clone().requires_grad_(), y.clone().requires_grad_()]
    wanted = function(*leaves)
    by = torch.autograd.grad((wanted * weights).sum(), leaves, allow_unused=True)
    bar = 40 * torch.finfo(dtype).eps
    torch.testing.assert_close(value, wanted.detach(), rtol=bar, atol=bar)
    for ours, theirs in zip(slopes, by, strict=True):
        torch.testing.assert_close(ours, torch.zeros_like(x) if theirs is None else theirs, rtol=bar, atol=bar)


def computed(formula: Formula, x: Tensor, y: Tensor, weights: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The values of a formula of two products, and its derivatives times weights."""
    compiled = loops(formula, (2, 0, 0))
    given = torch.stack([x, y])
    none, kind = np.empty((0, len(x)), given.numpy().dtype), given.numpy().dtype
    value, room = torch.empty_like(x), np.empty(len(x), kind)
    slopes = given.clone()
    compiled.values(given.numpy(), none, none, value.numpy())
    compiled.derivatives[GIVEN](slopes.numpy(), none, none, x.shape[1], room, room, weights.numpy(), none, none, room)
    return value, list(slopes)


def test_a_bound_that_is_nan_gives_nan() -> None:
    x, y = torch.tensor([[1.0, 2.0] + [0.0] * 14]), torch.tensor([[math.nan, 1.0] + [math.nan] * 14])
    for function in (lambda x, y: torch.clamp(x, min=y), lambda x, y: torch.clamp(x, max=y)):
        formula = traced(function, 2, torch.float32)
        assert formula is not None
        value, _ = computed(formula, x, y, torch.ones_like(x))
        torch.testing.assert_close(value, function(x, y), equal_nan=True)


def test_the_difference_of_equal_products_is_none() -> None:
    """Were only one of them rounded, its rounding would be left, and the root of it not a number."""
    formula = traced(lambda x, y: (x * x - y * y).sqrt(), 2, torch.float32)
    assert formula is not None
    x = 0.3 + torch.rand(4, LANES, generator=torch.Generator().manual_seed(0))
    assert not computed(formula, x, x.clone(), torch.zeros_like(x))[0].any()


def test_formulas_that_differ_in_a_number_have_loops_of_their_own() -> None:
    """Of -1 and -2 Python has one hash, and 0.0 == -0.0."""
    numbers = (-1.0, -2.0, 0.0, -0.0)
    formulas = [traced(lambda x, number=number: x * number, 1, torch.float32) for number in numbers]
    assert len({formula.digest for formula in formulas if formula}) == len(set(formulas)) == 4
    x = torch.full((1, 1, LANES), 3.0).numpy()
    none, out = np.empty((0, 1), np.float32), np.empty((1, LANES), np.float32)
    for formula, number in zip(formulas, numbers, strict=True):
        assert formula is not None
        loops(formula, (1, 0, 0)).values(x, none, none, out)
        assert (out == 3 * number).all()
        assert (np.signbit(out) == (math.copysign(1, number) < 0)).all()


OTHER, ONE = torch.ones(2, 3), torch.ones(())


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y if bool((x > 0).all()) else y,
        lambda x, y: (x * y).softmax(-1),
        lambda x, y: (x * y).reshape(3, 2).T,
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        lambda x, y: torch.special.i0(x) * y,
        lambda x, y: x * y + OTHER,
        lambda x, y: x * (x > y),
        lambda x, y: x.double() * y,
        lambda x, y: x * torch.rand_like(y),
        lambda x, y: x ** (1 / 3) + y,
        lambda x, y: [][0],
        lambda x, y: x * y * ONE.item(),
        lambda x, y: x * y + ONE.tolist(),
        lambda x, y: x * y + float(ONE),
        lambda x, y: x * y if ONE > 0 else y,
        lambda x, y: x * y * random.random(),
        lambda x, y: x * y / len(x),
        lambda x, y: x * y if x.shape[1] < 7 else y,
    ],
    ids=[
        "looks", "softmax", "turned", "floor", "unknown", "other tensor", "mask", "type", "chance", "root", "error",
        "item", "list", "float", "condition", "random", "rows", "columns",
    ],
)  # fmt: skip
def test_what_is_no_formula_is_left_to_pytorch(function: Any) -> None:
    assert traced(function, 2, torch.float32) is None


def test_a_function_that_looks_at_shapes_is_left_to_pytorch() -> None:
    """It is recorded with cells alone, but called with numbers of rows (B, 1) and of columns (N)."""
    for looks in (lambda x, a, b: x * b.dim() + a, lambda x, a, b: x + a * a.shape[-1] + b, lambda x, a, b: x + b[0]):
        assert traced(looks, 3, torch.float32, (1, 1)) is None
    known = traced(lambda x, a, b: torch.where(a > b, x * a, b).clamp(min=a), 3, torch.float32, (1, 1))
    assert known == traced(lambda x, a, b: torch.where(a > b, x * a, b).clamp(min=a), 3, torch.float32)
    assert known is not None


# --- means over all entities


def ball(xv: Tensor, rv: Tensor, xx: Tensor, rr: Tensor, xr: Tensor, own: Tensor, vv: Tensor, bias: Tensor) -> Tensor:
    """MuRP's score."""
    return own + bias - poincare.squared_distance_to_sum_from_products(xx, vv, rr, xv, xr, rv, c=0.7)


def ball_parts(size: int, number: int, dtype: torch.dtype) -> tuple[list[Tensor], ...]:
    draw = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return 0.2 * torch.randn(*shape, dtype=torch.float64, generator=draw)

    x, r, v = normal(size, 3), normal(size, 3), normal(number, 3)
    xx, rr, xr, vv = ((a * b).sum(1) for a, b in ((x, x), (r, r), (x, r), (v, v)))
    groups = [x, r], [xx, rr, xr, normal(size)], [v], [vv, normal(number)]
    return tuple([part.to(dtype).requires_grad_() for part in group] for group in groups)


def plain(kind: str, parts: tuple[list[Tensor], ...], shares: Tensor | None = None) -> Tensor:
    queries, ours, vectors, theirs = parts
    scores = ball(*(q @ vectors[-1].T for q in queries), *(number[:, None] for number in ours), *theirs)
    if kind == "mean":
        return scores.mean()
    if kind == "softplus":
        return torch.logaddexp(scores, torch.zeros_like(scores)).mean()
    return scores.logsumexp(1).mean() if shares is None else scores.logsumexp(1) @ shares


@pytest.fixture(scope="module")
def of_ball() -> dict[torch.dtype, Formula]:
    found = {dtype: traced(ball, 8, dtype) for dtype in (torch.float32, torch.float64)}
    return {dtype: formula for dtype, formula in found.items() if formula is not None}


def means(formula: Formula, kind: Any, parts: tuple[list[Tensor], ...], shares: Tensor | None = None) -> Tensor:
    queries, ours, vectors, theirs = parts
    return formula_mean(formula, kind, queries, ours, vectors, theirs, shares)


@both_types
@pytest.mark.parametrize("kind", KINDS)
# One block, several whole ones, and a last one that is not a multiple of a vector; as many vectors as products, or one.
@pytest.mark.parametrize(("number", "apart"), [(1, False), (40, True), (250, False), (256, True)])
def test_a_mean_is_that_of_all_scores(
    kind: str, number: int, apart: bool, dtype: torch.dtype, of_ball: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formula_means, "_CELLS", 6 * 48)
    parts = ball_parts(6, number, dtype)
    if apart:
        parts = parts[0], parts[1], parts[2] * 2, parts[3]
    leaves = [part for group in ball_parts(6, number, dtype) for part in group]
    value, expected = means(of_ball[dtype], kind, parts), plain(kind, parts)
    bar = 1e-5 if dtype == torch.float32 else 1e-12
    torch.testing.assert_close(value, expected, rtol=bar, atol=bar)
    given = [*parts[0], *parts[1], parts[2][0], *parts[3]]
    assert len(given) == len(leaves)
    found, wanted = (torch.autograd.grad(2 * mean, given) for mean in (value, expected))
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=10 * bar, atol=bar * float(theirs.abs().max()))
    with torch.no_grad():
        assert torch.equal(means(of_ball[dtype], kind, parts), value)


def test_a_weighted_mean_is_that_of_the_definition(of_ball: Any) -> None:
    parts = ball_parts(6, 50, torch.float64)
    shares = torch.tensor([0.5, 0.2, 0.1, 0.1, 0.09, 0.01], dtype=torch.float64)
    value, expected = means(of_ball[torch.float64], "log_sum_exp", parts, shares), plain("log_sum_exp", parts, shares)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    given = [part for group in parts for part in group]
    for ours, theirs in zip(torch.autograd.grad(value, given), torch.autograd.grad(expected, given), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_no_bit(kind: str, of_ball: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of blocks, and the order in which they are added, are those of the shapes."""
    monkeypatch.setattr(formula_means, "_CELLS", 40 * LANES)
    parts = ball_parts(40, 900, torch.float32)
    given, found = [part for group in parts for part in group], []
    for many in (1, 4):
        monkeypatch.setattr(threads, "count", lambda many=many: many)
        value = means(of_ball[torch.float32], kind, parts)
        found.append([value, *torch.autograd.grad(value, given)])
    assert all(torch.equal(one, several) for one, several in zip(*found, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_large_scores_do_not_overflow(kind: str, of_ball: Any) -> None:
    parts = ball_parts(6, 50, torch.float32)
    for at in (90.0, -200.0, 4000.0):
        ours = [*parts[1][:3], torch.full((6,), at)]
        parts = parts[0], ours, parts[2], parts[3]
        torch.testing.assert_close(means(of_ball[torch.float32], kind, parts), plain(kind, parts), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_a_number_stays_so(kind: str, of_ball: Any) -> None:
    parts = ball_parts(6, 50, torch.float32)
    with torch.no_grad():
        parts[2][0][7, 1] = torch.nan
    value = means(of_ball[torch.float32], kind, parts)
    assert bool(value.isnan())
    (by_x,) = torch.autograd.grad(value, parts[0][0])
    assert bool(by_x.isnan().any(1).all())


def test_a_second_derivative_is_refused(of_ball: Any) -> None:
    parts = ball_parts(6, 50, torch.float64)
    (by_x,) = torch.autograd.grad(means(of_ball[torch.float64], "mean", parts), parts[0][0], create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        by_x.sum().backward()
