"""The loop for distances to tangent vectors against PyTorch's operations, exact arithmetic and small differences."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from mpmath import mp
from torch import Tensor
from torch.autograd import gradcheck

from murp import threads
from murp.geometry import poincare
from murp.kernels import tangent_distances
from murp.models.shared import tangent_distance

kinds = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])


def pairs(dtype: torch.dtype, width: int, far: float = 1.0) -> list[Tensor]:
    """|x|² and c (9, 1), |v|² up to ``far`` and ⟨x,v⟩ (9, width): leaves, in the order of the function's arguments."""
    draw = torch.Generator().manual_seed(0)
    xx, vv, c = (torch.rand(shape, generator=draw, dtype=dtype) for shape in ((9, 1), (9, width), (9, 1)))
    vv = far * vv
    xv = (torch.rand(9, width, generator=draw, dtype=dtype) - 0.5) * (xx * vv).sqrt()
    return [values.clone().requires_grad_() for values in (xx / 2, vv, xv, c)]


@kinds
@pytest.mark.parametrize(("width", "far"), [(1, 1.0), (30, 1.0), (30, 60.0), (251, 6.0)])
def test_values_and_slopes_are_those_of_pytorchs_operations(dtype: torch.dtype, width: int, far: float) -> None:
    """Beyond c|v|² = 4 the loop has another formula for sinh."""
    found = []
    for way in (tangent_distances.squared, poincare.squared_distance_to_tangent_from_products):
        leaves = pairs(dtype, width, far)
        assert tangent_distances.fits(*leaves)
        squared = way(*leaves)
        found.append([squared, *torch.autograd.grad(squared.sin().sum(), leaves)])
    bar = 1e-4 if dtype == torch.float32 else 1e-11
    torch.testing.assert_close(found[0][0], found[1][0], rtol=bar / 20, atol=bar / 20)
    for ours, theirs in zip(*found, strict=True):
        assert float((ours - theirs).detach().norm()) <= bar * float(theirs.detach().norm())


# r = √c|v|: at the origin, small, usual, about the place where the series of sinh ends, up to the largest.
@pytest.mark.parametrize("r", [0.0, 1e-9, 1e-4, 0.3, 1.99, 2.01, 5.0, 9.9])
@kinds
def test_values_and_slopes_are_those_of_exact_arithmetic(r: float, dtype: torch.dtype) -> None:
    given = [torch.tensor([[value]], dtype=dtype) for value in (0.4, r * r / 1.3, -0.2 * r, 1.3)]
    leaves = [values.clone().requires_grad_() for values in given]

    def exact(xx: Any, vv: Any, xv: Any, c: Any) -> Any:
        t = mp.sqrt(c * vv)
        w = mp.cosh(t) * (mp.sinh(t) / t if t != 0 else 1)
        z = (c * xx + (1 + c * xx) * mp.sinh(t) ** 2 - 2 * c * xv * w) / (1 - c * xx)
        return (2 * mp.asinh(mp.sqrt(z))) ** 2 / c

    with mp.workdps(60):
        place = [mp.mpf(float(values)) for values in given]
        value = float(exact(*place))
        h = mp.mpf(10) ** -20
        slopes = []
        for i in range(4):
            # |v|² is not negative: there the slope is taken on one side
            ends = [exact(*(p + step * h * (j == i) for j, p in enumerate(place))) for step in (1, 0)]
            slopes.append(float((ends[0] - ends[1]) / h))
    squared = tangent_distances.squared(*leaves)
    bar = 2e-4 if dtype == torch.float32 else 1e-9
    assert squared.item() == pytest.approx(value, rel=bar / 20)
    found = [float(slope) for slope in torch.autograd.grad(squared.sum(), leaves)]
    assert found == pytest.approx(slopes, rel=bar, abs=bar)


@kinds
@pytest.mark.parametrize("far", [1.0, 60.0])
def test_candidates_that_all_queries_share(dtype: torch.dtype, far: float) -> None:
    """|v|² is a row, read where it lies; its slope is the sum over the queries."""
    found = []
    for way in (tangent_distance.squared_distance, poincare.squared_distance_to_tangent_from_products):
        xx, vv, _, c = pairs(dtype, 30, far)
        row = vv[4].detach().requires_grad_()
        xv = (0.3 * (xx * row).sqrt()).detach().requires_grad_()
        assert tangent_distances.fits(xx, row, xv, c)
        squared = way(xx, row, xv, c)
        found.append([squared, *torch.autograd.grad(squared.sin().sum(), [xx, row, xv, c])])
    bar = 1e-4 if dtype == torch.float32 else 1e-11
    for ours, theirs in zip(*found, strict=True):
        assert ours.shape == theirs.shape
        assert float((ours - theirs).detach().norm()) <= bar * float(theirs.detach().norm())


def test_the_slopes_are_those_of_small_differences() -> None:
    assert gradcheck(tangent_distances.squared, pairs(torch.float64, 4))


@kinds
def test_threads_change_no_bit(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_WORTH_A_THREAD", 1)
    found = []
    for number in (1, 2, 5):
        monkeypatch.setattr(threads, "count", lambda number=number: number)
        leaves = pairs(dtype, 251)
        squared = tangent_distances.squared(*leaves)
        found.append([squared, *torch.autograd.grad(squared.sum(), leaves)])
    for other in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True))


@pytest.mark.parametrize("place", range(4))
def test_what_is_not_a_number_stays_so(place: int) -> None:
    given = pairs(torch.float64, 6)
    with torch.no_grad():
        given[place][2, -1] = torch.nan
    squared = tangent_distances.squared(*given)
    assert bool(squared[2, -1].isnan())
    assert bool(squared[[0, 1, 3]].isfinite().all())


def test_a_second_derivative_is_refused() -> None:
    leaves = pairs(torch.float64, 4)
    with pytest.raises(RuntimeError, match="once, not twice"):
        torch.autograd.grad(tangent_distances.squared(*leaves).sum(), leaves, create_graph=True)


def test_what_the_loop_cannot_do_is_left_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    xx, vv, xv, c = pairs(torch.float64, 6)
    monkeypatch.setattr(tangent_distances, "squared", None)
    with torch.no_grad():
        tangent_distance.squared_distance(xx, vv, xv, c)
    for given in ((xx, vv[:1], xv, c), (xx, vv, xv, 1.0), (xx, 1e4 * vv, xv, c), (xx, vv, xv, c[:1])):
        assert bool(tangent_distance.squared_distance(*given).isfinite().all())  # type: ignore[arg-type]
    assert tangent_distance.squared_distance(xx, vv[:, :0], xv[:, :0], c).shape == (9, 0)
    monkeypatch.undo()
    assert type(tangent_distance.squared_distance(xx, vv, xv, c).grad_fn).__name__ == "_SquaredBackward"
