"""The functions of one number that the Triton kernels spell out, against their definitions in both precisions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

triton: Any = pytest.importorskip("triton", reason="needs triton: pip install triton")
import triton.language as tl  # noqa: E402

import quick_interpreter  # noqa: E402
from murp.engines.triton_ball import distance_from_sinh  # noqa: E402
from murp.engines.triton_math import artanh_over, tanh_over  # noqa: E402

pytestmark = pytest.mark.triton
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# The continued fraction of artanh ends where it is good to 2·10⁻¹² at its upper end, 0.35.
precisions = pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 4e-7), (torch.float64, 4e-12)])


@triton.jit
def _functions(q, x, artanh, tanh, delta, half_slope, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = tl.load(x + at)
    tl.store(artanh + at, artanh_over(tl.load(q + at)))
    tl.store(tanh + at, tanh_over(value))
    d, ratio = distance_from_sinh(value)
    tl.store(delta + at, d)
    tl.store(half_slope + at, ratio)


@precisions
def test_functions_are_as_good_as_they_should_be(dtype: torch.dtype, tolerance: float) -> None:
    """0, the smallest that matter, every side of every threshold (0.35, 0.6), and far beyond."""
    values = torch.tensor([1e-30, 1e-8, 1e-3, 0.05, 0.13, 0.2, 0.3, 0.349, 0.351, 0.5, 0.599, 0.601, 1, 1.59, 8, 40.0])
    x, q = values.to(DEVICE, dtype), values.clamp(max=0.99).to(DEVICE, dtype)
    found = [torch.empty_like(x) for _ in range(4)]
    _functions[(1,)](q, x, *found, SIZE=len(x))
    exact = x.double()
    z, inside = exact, q.double()
    delta = 2 * torch.asinh(z.sqrt())
    expected = [torch.atanh(inside) / inside, torch.tanh(exact) / exact, delta, delta / (z * (1 + z)).sqrt()]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=tolerance, atol=0)


@precisions
def test_limits_at_zero(dtype: torch.dtype, tolerance: float) -> None:
    x = torch.zeros(16, dtype=dtype, device=DEVICE)
    found = [torch.empty_like(x) for _ in range(4)]
    _functions[(1,)](x, x, *found, SIZE=16)
    # At 0 every term but the constant one is 0. A GPU's division may round.
    torch.testing.assert_close([float(values[0]) for values in found], [1.0, 1.0, 0.0, 2.0], rtol=tolerance, atol=0)


@triton.jit
def _reduced(x, y, rows, columns, everything, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    where = at[:, None] * SIZE + at[None, :]
    a, b = tl.load(x + where), tl.load(y + where)
    first, second = tl.reduce((a, b), 1, _mixed)
    tl.store(rows + at, first + second)
    first, second = tl.reduce((a, b), 0, _mixed)
    tl.store(columns + at, first + second)
    first, second = tl.reduce((first, second), 0, _mixed)
    tl.store(everything, first + second)


@triton.jit
def _mixed(a, b, c, d):
    return a - c * b, b + d


@pytest.mark.skipif(DEVICE == "cuda", reason="without the interpreter")
def test_the_quick_interpreter_reduces_as_triton_s_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bit for bit: a function that is neither commutative nor associative shows every other order."""
    from triton.runtime import interpreter

    draw = torch.Generator().manual_seed(0)
    given = [torch.randn(8, 8, generator=draw) for _ in range(2)]

    def reduced() -> list[torch.Tensor]:
        found = [torch.zeros(8), torch.zeros(8), torch.zeros(1)]
        _reduced[(1,)](*given, *found, SIZE=8)
        return found

    quick = reduced()
    monkeypatch.setattr(interpreter.ReduceOps, "generic_reduce", quick_interpreter.slow_reduce())
    assert all(torch.equal(*pair) for pair in zip(quick, reduced(), strict=True))
