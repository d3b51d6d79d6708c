"""Points in formats with fewer digits: each is the nearest that there is, and stays a point of its space."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from examples import at_most
from murp.config import Config
from murp.errors import ConfigError
from murp.geometry import Euclidean, Hyperboloid, PoincareBall, Sphere, poincare
from murp.models import from_config
from murp.models.rounding import can_round, rounded

FORMATS = [torch.float16, torch.bfloat16]


def bits(values: Tensor) -> Tensor:
    return values.view(torch.int16).int()


@settings(max_examples=at_most(200))
@given(
    dtype=st.sampled_from(FORMATS),
    exact=st.sampled_from([torch.float32, torch.float64]),
    c=st.sampled_from([1.0, 0.01, 7.3, 1e4]),
    dim=st.integers(1, 60),
    gap=st.sampled_from([0.0, 1e-7, 1e-4, 1e-2, 0.5]),
    equal=st.booleans(),  # coordinates that are all rounded alike take a row farthest out
    seed=st.integers(0, 2**16),
)
def test_a_rounded_point_is_in_the_ball_and_next_to_the_point(
    dtype: torch.dtype, exact: torch.dtype, c: float, dim: int, gap: float, equal: bool, seed: int
) -> None:
    """Up to the rim: as far out as a step may put a point."""
    draw = torch.Generator().manual_seed(seed)
    way = torch.randn(8, dim, dtype=exact, generator=draw)
    way = way.sign() * (1 + 1e-3 * way.abs()) if equal else way
    x = poincare.project(way / torch.linalg.vector_norm(way, dim=-1, keepdim=True) * ((1 - gap) / c**0.5), c=c)
    y = rounded(x, dtype, PoincareBall(c))
    assert y.dtype == dtype
    assert bool(poincare.contains(y, c=c).all())
    back = y.to(exact)
    assert bool(poincare.distance(back[:4], back[4:], c=c).isfinite().all())
    assert bool(poincare.distance(back, torch.zeros_like(back), c=c).isfinite().all())
    assert torch.equal(poincare.project(back, c=c), back), "a step takes the point as it is"
    assert int((bits(y) - bits(x.to(dtype))).abs().max()) <= 1, "the nearest number, or the next one towards 0"
    assert bool((back.abs() <= x.abs())[y != x.to(dtype)].all())
    assert torch.equal(rounded(back, dtype, PoincareBall(c)), y), "rounding twice is rounding once"


def test_some_points_at_the_rim_would_leave_the_ball() -> None:
    """What the rule above is for."""
    way = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    x = poincare.project(way / torch.linalg.vector_norm(way, dim=-1, keepdim=True), c=1.0)
    for dtype in FORMATS:
        assert not bool(poincare.contains(x.to(dtype), c=1.0).all())


@pytest.mark.parametrize("dtype", FORMATS)
def test_flat_points_are_rounded_to_the_nearest_and_nan_stays(dtype: torch.dtype) -> None:
    x = torch.randn(50, 3, generator=torch.Generator().manual_seed(0))
    x[7] = torch.nan
    for geometry in (Euclidean(), PoincareBall(1e-4)):
        torch.testing.assert_close(rounded(x, dtype, geometry), x.to(dtype), rtol=0, atol=0, equal_nan=True)
    assert rounded(x, x.dtype, Euclidean()) is x


def test_the_compiler_does_not_look_into_the_rounding() -> None:
    """It would leave out the way to fewer digits and back, and points would leave the ball."""
    seen: list[object] = []

    def backend(graph: torch.fx.GraphModule, inputs: object) -> object:
        seen.extend(node.target for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    x = poincare.project(torch.ones(2, 3), c=1.0)
    compiled = torch.compile(lambda rows: rounded(rows, torch.float16, PoincareBall()), backend=backend)
    assert torch.equal(compiled(x), rounded(x, torch.float16, PoincareBall()))
    assert seen == [torch.ops.murp.rounded_in_ball.default]


def test_only_spaces_whose_coordinates_are_free_are_rounded() -> None:
    assert can_round(Euclidean())
    assert can_round(PoincareBall(2.0))
    assert not can_round(Hyperboloid())
    assert not can_round(Sphere())


@pytest.mark.parametrize("table_dtype", ["float16", "bfloat16"])
def test_initial_values_are_those_of_float32_rounded(table_dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawn block by block."""
    monkeypatch.setattr("murp.models.model.BLOCK", 16)
    full = from_config(Config(dim=3), 50, 2).initialise(5)
    half = from_config(Config(dim=3, table_dtype=table_dtype), 50, 2).initialise(5)
    wanted = getattr(torch, table_dtype)
    for name, values in full.parameters.items():
        kind = wanted if name == "entity" else torch.float32
        assert torch.equal(half.parameters[name], values.to(kind)), name
    opened = half.in_full()
    assert {values.dtype for values in opened.parameters.values()} == {torch.float32}
    assert opened.parameters["translation"] is half.parameters["translation"]
    assert full.in_full() is full


def test_a_model_reads_its_points_in_its_own_precision() -> None:
    half = from_config(Config(dim=3, table_dtype="bfloat16"), 6, 2).initialise(5)
    full = half.in_full()
    some = torch.tensor([[0, 5], [2, 2]])
    for where in (some, None):
        assert torch.equal(half.rows("object", where)["entity"], full.rows("object", where)["entity"])
    one = torch.tensor([3])
    assert torch.equal(half.score_objects(one, one % 2), full.score_objects(one, one % 2))
    assert half.broken() == []
    half.parameters["entity"][4, 1] = 1.0
    assert half.broken() == ["entity (row 4)"]


def test_the_setting_has_its_own_default_and_limits() -> None:
    assert Config().table_dtype == "auto"
    assert from_config(Config(dtype="float64"), 2, 1).point_dtype == torch.float64
    assert from_config(Config(table_dtype="float32"), 2, 1).point_dtype == torch.float32
    assert "table_dtype" not in Config().free(), "it decides the weights"
    with pytest.raises(ConfigError, match=r"table_dtype = float32 does not go with dtype = float64"):
        Config(dtype="float64", table_dtype="float32")
