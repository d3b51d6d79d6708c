"""The harness of numbers at the edge, as a toy; and that it would notice a wrong number."""

from __future__ import annotations

import json
from pathlib import Path

import edges
import pytest
import torch


def test_the_harness_runs_and_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "it.json"
    monkeypatch.setattr("sys.argv", ["edges.py", "--quick", "--out", str(out)])
    edges.main()
    stored = json.loads(out.read_text(encoding="utf-8"))
    figures = stored["figures"]
    assert set(figures) == set(stored["parts"]) == set(edges.PARTS)
    assert all(part["failure"] == 0 for part in figures.values())
    grids = [part for name, part in figures.items() if name != "long run"]
    assert all(part["finite"] + part["stopped"] == part["cases"] > 0 for part in grids)
    assert any(part["stopped"] for part in grids)


def test_a_point_outside_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"model": "murp", "engine": "torch", "dim": 2, "epochs": 1}
    train = edges.murp.train

    def astray(*given: object, **more: object) -> object:
        run = train(*given, **more)  # type: ignore[arg-type]
        run.model.parameters["entity"][1] = torch.tensor([1.0, 0.5])
        return run

    assert edges.outcome(edges.tree(True), settings, tmp_path / "good") == ("finite", "")
    monkeypatch.setattr(edges.murp, "train", astray)
    assert edges.outcome(edges.tree(True), settings, tmp_path / "bad") == (
        "failure",
        "not in their space: entity (row 1)",
    )
