"""Ranks with the gradients of a fused kernel: the same bits on any number of them, and autograd's up to rounding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from outcome import outcome
from run_on_ranks import on_ranks
from test_training_of_ranks import continued, hastened, trained

from murp.errors import ConfigError
from murp.graph import KnowledgeGraph
from murp.runs import checkpoint, folder
from murp.testing import tree
from murp.training import train

pytest.importorskip("numba", reason="needs numba: pip install numba")

SETTINGS: dict[str, Any] = {
    "dim": 6, "batch_size": 20, "negatives": 3, "device": "cpu", "validate_every": 1, "save_every": 0.0, "lr": 0.02,
    "optimizer": "adam", "slices": 4, "epochs": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process, its batches cut into four; auto takes the fused kernel."""
    out = tmp_path_factory.mktemp("calm") / "run"
    trained(tree(), out, SETTINGS)
    assert engine_of(out) == "sharded numba"
    return out


def engine_of(run: Path) -> Any:
    return json.loads((run / folder.ENVIRONMENT).read_text())["engine"]


def weights(run: Path) -> dict[str, torch.Tensor]:
    return checkpoint.load(run / folder.LAST)[0]


def losses(run: Path) -> list[float]:
    return [record["loss"] for record in folder.read_metrics(run)]


def test_it_is_the_same_run_on_any_number_of_ranks(small_tree: KnowledgeGraph, calm: Path, tmp_path: Path) -> None:
    """On four ranks, then on two, then on one: losses, weights, optimizer and MRR to the bit."""
    out = tmp_path / "run"
    on_ranks(hastened, 4, small_tree, out, {**SETTINGS, "engine": "numba", "epochs": 1})
    assert on_ranks(continued, 2, out, 2) == [None] * 2
    continued(out, 3)
    assert outcome(out) == outcome(calm)


@pytest.mark.parametrize(
    ("model", "further"),
    [
        ("murp", {}),
        ("mure", {"optimizer": "row-adagrad", "corruption": "with-head"}),
        ("mure", {"optimizer": "sgd", "corruption": "local", "entity_parts": 4}),
    ],
)
def test_it_is_the_training_of_autograd_up_to_rounding(
    model: str, further: dict[str, Any], small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    for engine in ("numba", "torch"):
        trained(small_tree, tmp_path / engine, {**SETTINGS, "model": model, **further, "engine": engine})
    assert engine_of(tmp_path / "torch") == "sharded"
    np.testing.assert_allclose(losses(tmp_path / "numba"), losses(tmp_path / "torch"), rtol=1e-5)
    fused, plain = weights(tmp_path / "numba"), weights(tmp_path / "torch")
    assert set(fused) == set(plain)
    for name, values in plain.items():
        torch.testing.assert_close(fused[name], values, rtol=1e-3, atol=1e-4, msg=name)


def test_a_run_that_began_with_autograd_and_auto_continues_with_it(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    """As versions began it for which auto was torch on every slice."""
    whole, old = tmp_path / "whole", tmp_path / "old"
    trained(small_tree, whole, {**SETTINGS, "engine": "torch", "epochs": 2})
    trained(small_tree, old, {**SETTINGS, "engine": "torch", "epochs": 1})
    config = (old / folder.CONFIG).read_text()
    assert config.count('engine = "torch"') == 1
    (old / folder.CONFIG).write_text(config.replace('engine = "torch"', 'engine = "auto"'))
    continued(old, 2)
    assert outcome(old) == outcome(whole)


def test_an_engine_that_cannot_is_refused_before_anything_is_written(
    small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    with pytest.raises(
        ConfigError, match=r"a batch of 3 triples cannot be cut into 4 slices; .*; engine numba knows no dropout"
    ):
        train(small_tree, out=tmp_path / "no", slices=4, batch_size=3, engine="numba", query_dropout=0.1)
    with pytest.raises(ConfigError, match="engine triton runs on cuda, and the model is on cpu"):
        train(small_tree, out=tmp_path / "no", slices=2, engine="triton", device="cpu")
    assert not (tmp_path / "no").exists()


def test_ranks_with_other_engines_do_not_train_together(small_tree: KnowledgeGraph, tmp_path: Path) -> None:
    (said, *_) = (str(error) for error in on_ranks(without_numba, 2, small_tree, tmp_path / "run") if error is not None)
    assert "engine: rank 0 has sharded numba, rank 1 has sharded" in said
    assert not (tmp_path / "run").exists()


def without_numba(graph: KnowledgeGraph, out: Path) -> None:
    """Train; on the second rank the fused kernel's package is missing."""
    import os
    from dataclasses import replace

    from murp import engines

    if os.environ["RANK"] == "1":
        engines.FUSED["numba"] = replace(engines.FUSED["numba"], package="no_such_package")
    trained(graph, out, SETTINGS)


@pytest.mark.gpu
@pytest.mark.parametrize("settings", [{}, {"transformation": "swapped", "bias": "norm"}])
def test_slices_on_a_gpu_have_the_gradients_of_triton(
    settings: dict[str, Any], small_tree: KnowledgeGraph, tmp_path: Path
) -> None:
    for engine in ("auto", "torch"):
        trained(small_tree, tmp_path / engine, {**SETTINGS, **settings, "device": "cuda", "engine": engine})
    assert engine_of(tmp_path / "auto") == "sharded triton"
    np.testing.assert_allclose(losses(tmp_path / "auto"), losses(tmp_path / "torch"), rtol=1e-4)
    fused, plain = weights(tmp_path / "auto"), weights(tmp_path / "torch")
    for name, values in plain.items():
        torch.testing.assert_close(fused[name], values, rtol=1e-2, atol=1e-3, msg=name)
