"""The README's Python example runs as it stands (with fewer epochs)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    code = found[1].replace("epochs=60", "epochs=1")
    assert code != found[1]
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(code, names)
    assert 0 < names["report"].mrr < 1
    assert 0 <= names["report"].hits[10] <= 1
    assert "has_part" in names["report"].by_relation
    assert names["run"].state["epoch"] == 1
