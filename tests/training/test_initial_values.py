"""Where training begins: what the initial scale changes, what it does not, and which scales are refused."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import murp
from murp import models
from murp.config import Config
from murp.errors import ConfigError
from murp.geometry import PoincareBall
from murp.graph import KnowledgeGraph
from murp.models import model
from murp.training.grid import _groups
from murp.training.start import new_model


@pytest.mark.parametrize("kind", ["murp", "mure"])
def test_the_scale_stretches_points_and_nothing_else(kind: str) -> None:
    plain, wide = (models.MODELS[kind](400, 6, 8).initialise(3, *scale) for scale in ((), (0.05,)))
    for name in ("entity", "translation"):
        torch.testing.assert_close(wide.parameters[name], 50 * plain.parameters[name])
    # Four standard errors: the deviation of n normal numbers is off by 1/√(2n) of itself.
    values = wide.parameters["entity"]
    assert float(values.std()) == pytest.approx(0.05, rel=4 / math.sqrt(2 * values.numel()))
    # To the bit: the same numbers of the same generator, which the scale is not applied to.
    assert torch.equal(wide.parameters["subject_stretch"], plain.parameters["subject_stretch"])


@pytest.mark.parametrize("dim", [1, 2, 20])
@pytest.mark.parametrize("curvature", [1.0, 1e8])
def test_points_outside_the_ball_are_refused_with_a_scale_that_is_not(
    curvature: float, dim: int, small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    settings = {"dim": dim, "device": "cpu", "epochs": 1, "curvature": curvature}
    with pytest.raises(ConfigError, match="outside the ball") as refused:
        murp.train(small_tree, out=tmp_path / "run", initial_scale=5.0, **settings)  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()
    advice = re.search(r"choose (\S+) or less", str(refused.value))
    assert advice is not None
    advised = Config(initial_scale=float(advice[1]), **settings)  # type: ignore[arg-type]
    assert not new_model(advised, small_tree).broken()


class RelationsInABall(models.MuRE):
    """Entities in flat space, and translations in a ball."""

    def declare(self) -> tuple[models.Table, ...]:
        ball = PoincareBall(4.0)
        return tuple(
            dataclasses.replace(table, geometry=ball) if table.name == "translation" else table
            for table in super().declare()
        )


def test_the_ball_may_be_that_of_another_table(small_tree: KnowledgeGraph) -> None:
    settings = {"model": f"{__name__}:RelationsInABall", "dim": 3, "device": "cpu"}
    with pytest.raises(ConfigError, match=r"outside the ball of radius 0.5: choose \S+ or less"):
        new_model(Config(initial_scale=5.0, **settings), small_tree)


def test_flat_space_has_no_outside(small_tree: KnowledgeGraph) -> None:
    assert not new_model(Config(model="mure", initial_scale=5.0, device="cpu"), small_tree).broken()


def test_runs_that_begin_elsewhere_can_share_a_launch() -> None:
    configs = [Config(initial_scale=scale) for scale in (1e-3, 0.1)] + [Config(dim=5)]
    groups = _groups([(Path(str(i)), config) for i, config in enumerate(configs)], 16)
    assert [len(group) for group in groups] == [2, 1]


@pytest.mark.parametrize("initial", ["normal", "uniform", "xavier", "one", "zero"])
@pytest.mark.parametrize("rows", [1, 64, 70, 333])
def test_rows_drawn_in_blocks_are_those_of_one_draw(rows: int, initial: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the numbers depend on how many rows the table has."""
    monkeypatch.setattr(model, "BLOCK", 64)
    table = models.Table("entity", "entity", (3,), initial=initial)
    whole = table.draw(rows, torch.float32, torch.Generator().manual_seed(4), 0.1)
    blocks = list(table.draw_in_blocks(rows, torch.float32, torch.Generator().manual_seed(4), 0.1))
    assert torch.equal(torch.cat([block for _, block in blocks]), whole)
    assert [start for start, _ in blocks] == list(range(0, rows, 64))[: len(blocks)]
