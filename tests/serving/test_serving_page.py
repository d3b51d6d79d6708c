"""The code of docs/serving.md runs; the lines for Docker are done by tests/tools/test_dockerfile.py."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from explorer_runs import made_run, wait_for

import murp
from examples import PATIENCE
from murp.cli.main import parser
from murp.client import RefusedError
from murp.graph import KnowledgeGraph

PAGE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text()
TRIPLE = ("asia.n.01", "has_part", "india.n.01")


def test_its_python_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_run(tmp_path / "run", KnowledgeGraph.load("wordnet-mini"), save=True, model="distmult")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    with murp.serve(tmp_path / "run") as served:
        exec(code.replace("http://127.0.0.1:8000", served.address), {})
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_its_commands_run(tmp_path: Path) -> None:
    """Each server on a free port; the run is replaced and asked as the page does it."""
    graph = KnowledgeGraph.load("wordnet-mini")
    for seed, name in enumerate(("first", "next")):
        made_run(tmp_path / "runs" / name, graph, save=True, model="distmult", seed=seed)
    (tmp_path / "keys.txt").write_text("# a comment\na-key-of-the-tests-0123456789\n")
    plain, locked = [line for line in PAGE.splitlines() if line.startswith("murp ")]
    with started(plain, tmp_path) as client:
        before = client.score([TRIPLE])
        (ask,) = re.findall(r"^curl .*$", PAGE, re.M)
        if shutil.which("curl"):
            told = subprocess.run(ask.replace("http://127.0.0.1:8000", client.address), shell=True, capture_output=True)
            assert len(json.loads(told.stdout)["answers"][0]["predictions"]) == 10
        (move,) = re.findall(r"^mv .*$", PAGE, re.M)
        subprocess.run(move, shell=True, check=True, cwd=tmp_path)
        wait_for(lambda: client.health().reloads == 1)
        assert client.score([TRIPLE]) != before
    with started(locked, tmp_path) as client, pytest.raises(RefusedError, match="key"):
        client.score([TRIPLE])


@contextmanager
def started(line: str, folder: Path) -> Iterator[murp.Client]:
    """A client of the server that a command starts."""
    words = shlex.split(line)[1:]
    parser(words).parse_args(words)
    words = [*(word for word in words if word not in ("--port", "8000")), "--port", "0"]
    command = [sys.executable, "-m", "murp", *words]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"serving: http://[^ ]*:(\d+)/", process.stdout.readline())
            assert found is not None
            yield murp.Client(f"http://127.0.0.1:{found[1]}", timeout=PATIENCE)
        finally:
            process.terminate()
