"""Points that are stored rounded (``table_dtype``): a step is the step of full precision, and then the rounding.

tests/engines/test_fused.py compares the engine triton with this one.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from murp import models
from murp.config import Config
from murp.engines import Chunk, Task, TorchEngine, build
from murp.engines import step as engine_step
from murp.geometry import PoincareBall
from murp.models import Model
from murp.models.rounding import rounded
from recorded import remembering
from steps import random_batch

FORMATS = ["float16", "bfloat16"]
CASES: list[dict[str, Any]] = [
    {"model": "murp", "lr": 50.0},
    {"model": "mure", "lr": 5.0},
    {"model": "murp", "optimizer": "adam", "lr": 0.1},
    {"model": "mure", "optimizer": "adagrad", "lr": 0.1},
    {"model": "complex", "optimizer": "adam", "lr": 0.1, "regularizer": "n3"},
    {"model": "murp", "objective": "one-vs-all", "lr": 5.0},
    {"model": "distmult", "objective": "one-vs-all", "optimizer": "row-adagrad", "lr": 0.1},
    {"model": "roth", "optimizer": "adam", "lr": 0.1},
]


def spread_out(config: Config, entities: int, seed: int = 0) -> Model:
    """A model whose points are stored rounded, some of them far from the origin."""
    model = remembering(models.from_config(config, entities, 2).initialise(seed))
    draw = torch.Generator().manual_seed(seed)
    points = torch.randn(entities, config.dim, generator=draw, dtype=model.dtype)
    ball = model.geometry if isinstance(model.geometry, PoincareBall) else None
    points = points if ball is None else ball.exp0(points)
    model.parameters["entity"] = rounded(points, model.point_dtype, model.geometry)
    return model


def engine_of(config: Config, model: Model) -> TorchEngine:
    return TorchEngine(Task.of(config, model))


@pytest.mark.parametrize("table_dtype", FORMATS)
@pytest.mark.parametrize("settings", CASES, ids=lambda case: "-".join(map(str, case.values())))
@pytest.mark.parametrize("entities", [7, 500])
@pytest.mark.parametrize("whole", [False, True])
def test_a_step_is_the_step_of_full_precision_rounded(
    table_dtype: str, settings: dict[str, Any], entities: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, three steps: those of tables that are read and moved as a whole, and of single rows."""
    if whole:
        monkeypatch.setattr(engine_step, "MANY", 1)
    config = Config(**settings, dim=4, table_dtype=table_dtype)
    monkeypatch.setattr(config.parts["optimizer"], "move", lambda *_, **__: False)  # a loop that rounds sums otherwise
    half = spread_out(config, entities)
    full = remembering(deepcopy(half).in_full())
    sampled = config.part("objective").sampled
    ours, theirs = (engine_of(config, model) for model in (half, full))
    for i in range(3):
        positives, negatives = random_batch(entities, 4, 6, 3, seed=i)
        drawn: Tensor | None = negatives if sampled else None
        loss = ours.step(positives, drawn, config.lr)
        assert torch.equal(loss, theirs.step(positives, drawn, config.lr))
        before = full.parameters["entity"]
        full.parameters["entity"] = rounded(before, half.point_dtype, full.geometry).to(full.dtype)
        for name, values in full.parameters.items():
            assert torch.equal(half.parameters[name].to(full.dtype), values), name
        for name, values in theirs.states[0].items():
            assert torch.equal(ours.states[0][name], values), name
            assert values.dtype == torch.float32
    assert half.parameters["entity"].dtype == half.point_dtype
    assert half.broken() == []


@pytest.mark.parametrize("table_dtype", FORMATS)
def test_wild_steps_leave_every_point_in_the_ball(table_dtype: str) -> None:
    config = Config(dim=4, table_dtype=table_dtype, lr=1e6)
    model = spread_out(config, 20)
    engine = engine_of(config, model)
    for i in range(5):
        assert bool(engine.step(*random_batch(20, 4, 16, 5, seed=i), config.lr).isfinite())
        assert model.broken() == []
    radius = torch.linalg.vector_norm(model.parameters["entity"].double(), dim=-1)
    assert float(radius.max()) > 0.99, "and some are at its rim"


@pytest.mark.gpu
@pytest.mark.parametrize("table_dtype", FORMATS)
@pytest.mark.parametrize("name", ["murp", "mure"])
@pytest.mark.parametrize("compile_after", [0.0, 1e9])
def test_steps_on_the_gpu_are_those_of_the_cpu(table_dtype: str, name: str, compile_after: float) -> None:
    """Captured, and compiled and captured; in float64, which leaves no doubt where to round."""
    config = Config(model=name, dim=9, table_dtype=table_dtype, dtype="float64")
    there, here = spread_out(config, 40).to("cuda"), spread_out(config, 40)
    engines = TorchEngine(there, compile_after=compile_after), TorchEngine(here)
    for size in (16, 5):
        batches = [random_batch(40, 4, size, 6, seed=size + i) for i in range(6)]
        positives, negatives = (torch.stack(part) for part in zip(*batches, strict=True))
        on_gpu = engines[0].steps(positives.cuda(), negatives.cuda(), 2.0)
        torch.testing.assert_close(on_gpu.cpu(), engines[1].steps(positives, negatives, 2.0), rtol=1e-7, atol=1e-7)
        assert torch.equal(there.parameters["entity"].cpu(), here.parameters["entity"])


@pytest.mark.gpu
@pytest.mark.parametrize("table_dtype", FORMATS)
@pytest.mark.parametrize("name", ["murp", "mure"])
@pytest.mark.parametrize("host", [False, True])
def test_fused_steps_on_the_gpu_follow_full_precision(table_dtype: str, name: str, host: bool) -> None:
    """Many steps in float32, from a graph: the same loss up to rounding, and all points in their space."""
    full, half = Config(model=name, dim=40), Config(model=name, dim=40, table_dtype=table_dtype)
    positives = torch.stack([random_batch(2000, 4, 128, 1, seed=i)[0] for i in range(300)]).cuda()
    losses = []
    for config in (full, half):
        model = models.from_config(config, 2000, 2).initialise(0, host=host).to("cuda", host=host)
        engine = build("triton", [Task.of(config, model)])
        losses.append(float(engine.run([Chunk(positives, 2000, 50, 3)], [10.0])[0]))
        torch.cuda.synchronize()
        assert model.broken() == []
        assert model.parameters["entity"].dtype == model.point_dtype
        assert model.parameters["entity"].device.type == ("cpu" if host else "cuda")
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
