"""Learning rates by epoch: their values, and that a run resumed in their midst keeps them."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_training import StopAt, assert_same_bits, weights

import murp
from murp import Config
from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.schedules import SCHEDULES
from murp.training import Interrupted, loop
from murp.training.schedule import learning_rate
from murp.training.state import State

QUICK: dict[str, Any] = {
    "dim": 3, "batch_size": 16, "negatives": 3, "device": "cpu", "engine": "torch", "optimizer": "adam", "lr": 0.01,
    "validate_every": 1,
}  # fmt: skip


@given(
    schedule=st.sampled_from(list(SCHEDULES)),
    epochs=st.integers(1, 300),
    warmup=st.integers(0, 40),
    reductions=st.integers(0, 5),
    data=st.data(),
)
def test_values(schedule: str, epochs: int, warmup: int, reductions: int, data: Any) -> None:
    epoch = data.draw(st.integers(0, epochs - 1))
    config = Config(lr=3.0, lr_schedule=schedule, epochs=epochs, warmup=warmup)
    t = epoch / epochs
    usual = {
        "constant": 3.0,
        "linear": 3 * (1 - t),
        "cosine": 3 * math.cos(math.pi * t / 2) ** 2,
        "plateau": 3 * 0.1**reductions,
    }
    ramp = min(1.0, (epoch + 1) / (warmup + 1))
    found = learning_rate(config, State(epoch=epoch, reductions=reductions))
    assert found == pytest.approx(ramp * usual[schedule], rel=1e-12)
    assert found > 0


def test_warming_up_rises_by_equal_steps_to_the_whole_rate() -> None:
    config = Config(lr=4.0, warmup=3, epochs=9)
    assert [learning_rate(config, State(epoch=epoch)) for epoch in range(6)] == [1.0, 2.0, 3.0, 4.0, 4.0, 4.0]


def test_exact_rates_of_four_epochs() -> None:
    rates = {
        name: [learning_rate(Config(lr=8.0, epochs=4, lr_schedule=name), State(epoch=epoch)) for epoch in range(4)]
        for name in ("constant", "linear", "cosine")
    }
    assert rates["constant"] == [8, 8, 8, 8]
    # Exact: multiples of a quarter of 8.
    assert rates["linear"] == [8, 6, 4, 2]
    assert rates["cosine"] == pytest.approx([8, 4 * (1 + 2**-0.5), 4, 4 * (1 - 2**-0.5)])


def test_a_plateau_without_end_divides_without_end() -> None:
    config = Config(lr_schedule="plateau")
    assert learning_rate(config, State(reductions=10_000)) >= 0


def validations(monkeypatch: pytest.MonkeyPatch, *mrr: float) -> None:
    """Let validations find these, the last one for ever; by epoch, so that a resumed run finds the same."""
    states: list[Any] = []
    whole = loop._validate

    def validate(job: Any, *others: Any) -> Any:
        states.append(job.state)
        return whole(job, *others)

    def found(*_: Any, **__: Any) -> Any:
        value = mrr[min(states[-1].epoch, len(mrr)) - 1]
        return SimpleNamespace(mrr=value, to_dict=lambda: {"mrr": value})

    monkeypatch.setattr(loop, "_validate", validate)
    monkeypatch.setattr(loop, "evaluate", found)


def rates(path: Path) -> list[float]:
    return [record["lr"] for record in murp.load(path).metrics()]


def test_plateau_divides_after_three_validations_that_are_no_better(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validations(monkeypatch, 0.5, 0.4, 0.5, 0.3, 0.6, 0.1)
    murp.train(small_tree, out=tmp_path / "run", **QUICK, lr_schedule="plateau", epochs=12)
    # Better in 1 and 5, not in 2 to 4, nor from 6 on.
    assert rates(tmp_path / "run") == pytest.approx([0.01] * 4 + [0.001] * 4 + [1e-4] * 3 + [1e-5])


def test_resuming_amid_a_plateau_keeps_the_reduced_rate(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped in the warm-up, before the rate is reduced, and after."""
    validations(monkeypatch, 0.5, 0.4)
    chosen = {**QUICK, "lr_schedule": "plateau", "epochs": 8, "warmup": 2}
    murp.train(small_tree, out=tmp_path / "whole", **chosen)
    with pytest.raises(Interrupted):
        murp.train(small_tree, out=tmp_path / "parts", progress=StopAt(2), **chosen)
    for _ in range(2):
        with pytest.raises(Interrupted):
            murp.resume(tmp_path / "parts", progress=StopAt(2))
    murp.resume(tmp_path / "parts")
    assert rates(tmp_path / "parts") == rates(tmp_path / "whole")
    assert rates(tmp_path / "whole")[4:] == pytest.approx([0.001] * 3 + [1e-4])
    assert_same_bits(weights(tmp_path / "whole"), weights(tmp_path / "parts"))


@pytest.mark.parametrize("chosen", [{"lr_schedule": "plateau"}, {"warmup": 3}], ids=str)
def test_a_rate_that_does_not_depend_on_the_length_lets_a_run_grow(
    chosen: dict[str, Any], small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    validations(monkeypatch, 0.5, 0.4)
    murp.train(small_tree, out=tmp_path / "long", **QUICK, **chosen, epochs=7)
    murp.train(small_tree, out=tmp_path / "run", **QUICK, **chosen, epochs=2)
    murp.resume(tmp_path / "run", epochs=7)
    assert rates(tmp_path / "run") == rates(tmp_path / "long")
    assert_same_bits(weights(tmp_path / "long"), weights(tmp_path / "run"))


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("warmup", [0, 2])
def test_a_rate_that_depends_on_the_length_does_not(
    schedule: str, warmup: int, small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    chosen = {**QUICK, "lr_schedule": schedule, "warmup": warmup, "validate_every": 0, "epochs": 2}
    run = murp.train(small_tree, out=tmp_path / "run", **chosen)
    with pytest.raises(ConfigError, match=rf"number of epochs cannot change.*{schedule}"):
        murp.resume(run.path, epochs=3)
    assert "epochs" not in (run.path / "config.toml").read_text().partition("\n\n")[0]


def test_plateau_needs_validations() -> None:
    with pytest.raises(ConfigError, match="validate_every"):
        Config(lr_schedule="plateau", validate_every=0)
