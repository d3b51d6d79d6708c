"""The guide docs/nearest-neighbours.md is run as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from drawn_runs import maker

from murp.graph import KnowledgeGraph

pytest.importorskip("faiss", reason="needs FAISS: pip install faiss-cpu")

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "nearest-neighbours.md"


@pytest.mark.parametrize("curvature", [1.0, 0.5])
def test_the_guide_runs(
    small_tree: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, curvature: float
) -> None:
    run = maker(small_tree, tmp_path)("runs/first", dim=10, curvature=curvature, dtype="float64")
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    assert len(names["nearest"](run.graph.entities.id(3))) == 10
