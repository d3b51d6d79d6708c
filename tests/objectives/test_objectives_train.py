"""Every objective trains MuRE and MuRP, and resumes bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from murp import registry
from murp.training import train
from murp.training.progress import Silent
from runs_of_parts import assert_resumes_bit_for_bit, losses
from trees import tree


@pytest.mark.parametrize("model", ["mure", "murp"])
@pytest.mark.parametrize("objective", registry.OBJECTIVES)
def test_an_objective_falls_and_resumes_bit_for_bit(objective: str, model: str, tmp_path: Path) -> None:
    # Adagrad's steps do not depend on the size of a loss, so its rate suits any objective.
    chosen = {"model": model, "objective": objective, "optimizer": "adagrad", "lr": 0.1}
    assert_resumes_bit_for_bit(tree(4), tmp_path, **chosen)
    first, *_, last = losses(tmp_path / "whole")
    assert last < 0.999 * first


@pytest.mark.parametrize("model", ["mure", "murp"])
@pytest.mark.parametrize("objective", registry.OBJECTIVES)
def test_the_default_learning_rate_suits_every_objective(objective: str, model: str, tmp_path: Path) -> None:
    """At 50, that of bernoulli, the loss of all others but rank rises or becomes NaN."""
    chosen = {"model": model, "objective": objective, "dim": 10, "device": "cpu", "validate_every": 0}
    run = train(tree(6), out=tmp_path / "whole", progress=Silent(), epochs=10, **chosen)
    assert run.config.lr == (50 if objective == "bernoulli" else 1)
    first, *_, last = losses(tmp_path / "whole")
    assert last < first
