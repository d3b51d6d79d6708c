"""The harnesses of crash safety and compatibility run, in toy sizes, and find nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import versions

from examples import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


def stored(script: str, out: Path) -> dict[str, Any]:
    """What a harness stores; in a process of its own, since it forks, or measures its memory."""
    command = [sys.executable, ROOT / "reliability" / script, "--quick", "--out", out]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, result.stdout + result.stderr
    return read(out)


def read(out: Path) -> dict[str, Any]:
    """What a harness has stored, with all that every result tells."""
    found: dict[str, Any] = json.loads(out.read_text())
    assert {"what", "settings", "figures", "machine", "date", "murp", "commit", "clean", "source"} <= set(found)
    return found


def test_killed_runs_end_as_undisturbed_ones(tmp_path: Path) -> None:
    figures = stored("crash.py", tmp_path / "it.json")["figures"]
    assert figures["kills"] >= 6
    assert figures["failures"] == 0
    assert figures["total"]["temporary files left at the end"] == 0
    assert set(figures["by_engine_and_model"]) == {"torch murp", "torch mure", "numba murp", "numba mure"}
    assert {"adam", "row-adagrad", "sgd"} <= {runs["optimizer"] for runs in figures["by_optimizer_and_objective"]}


def test_saving_takes_little_memory_beside_the_model(tmp_path: Path) -> None:
    figures = stored("saving.py", tmp_path / "it.json")["figures"]
    assert figures["beside_the_model_mib"] < 0.5 * figures["model_mib"]


def test_versions_are_stored_with_what_came_of_them(tmp_path: Path) -> None:
    assert versions.main(["--quick", "--out", str(tmp_path / "it.json")]) == 0
    figures = read(tmp_path / "it.json")["figures"]
    assert figures["this"]["failed"] == 0
    assert figures["this"]["passed"] > 0
    assert {"python", "torch", "numpy", "numba", "safetensors"} <= set(figures["this"]["versions"])
