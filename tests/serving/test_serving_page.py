"""The Python of docs/serving.md runs as it stands, and its commands are understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from exhibits import made_run

import murp
from murp.cli.main import parser
from murp.graph import KnowledgeGraph

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()


def test_its_python_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_run(tmp_path / "run", KnowledgeGraph.load("wordnet-mini"), save=True, model="distmult")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    with murp.serve(tmp_path / "run") as served:
        exec(code.replace("http://127.0.0.1:8000", served.address), {})
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_its_commands_are_understood() -> None:
    commands = [line for line in PAGE.splitlines() if line.startswith("murp ")]
    assert len(commands) == 2
    for command in commands:
        words = shlex.split(command)[1:]
        parser(words).parse_args(words)
