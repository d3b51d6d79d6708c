"""A copy in place of a new interpreter is started, given its words and ended as that would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from pyarrow import csv

import copied_interpreter
import copied_workers
from examples import PATIENCE

TELL = "import json, os, sys; print(json.dumps([sys.argv[1:], __name__, dict(os.environ), os.getcwd(), os.getpid()]))"


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("how", ["code", "module", "file"])
def test_it_has_the_words_the_variables_and_the_folder_that_it_is_given(how: str, tmp_path: Path) -> None:
    (tmp_path / "telling.py").write_text(TELL)
    paths = {"code": ["-c", TELL], "module": ["-m", "telling"], "file": [tmp_path / "telling.py"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        command = [sys.executable, "-W", "ignore", *paths[how], "a", "b c"]
        done = subprocess.run(command, env={"ONLY": "this"}, cwd=tmp_path, check=True, capture_output=True, text=True)
    words, name, variables, folder, process = json.loads(done.stdout)
    assert (words, name, variables, folder) == (["a", "b c"], "__main__", {"ONLY": "this"}, os.path.realpath(tmp_path))
    assert process != os.getpid()


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("pass", 0, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(3)", 3, ""),
        ("raise SystemExit('why')", 1, "why\n"),
        ("import sys; print('why', file=sys.stderr); print(1 / 0)", 1, "why\nTraceback"),
    ],
)
def test_it_ends_with_the_status_of_an_interpreter(code: str, status: int, told: str) -> None:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith(told)
    assert bool(done.stderr) == bool(told)


@pytest.mark.usefixtures("copied")
def test_other_commands_and_other_options_are_started_as_always() -> None:
    """An option that only a new interpreter can follow; a shell."""
    isolated = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(sys.flags.isolated)"], capture_output=True
    )
    assert isolated.stdout == b"1\n"
    assert subprocess.run("echo a; exit 2", shell=True, capture_output=True).returncode == 2


@pytest.mark.usefixtures("copied")
def test_a_library_may_use_what_it_had_open(tmp_path: Path) -> None:
    """Arrow has a pipe for signals from its first reading on, and replaces it in a copy."""
    file = tmp_path / "a.csv"
    file.write_text("x\n1\n2\n")
    assert csv.read_csv(file).num_rows == 2
    code = f"from pyarrow import csv; print(csv.read_csv({str(file)!r}).num_rows)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")


@pytest.mark.usefixtures("copied")
def test_whoever_reads_what_it_prints_is_told_of_its_end() -> None:
    """The ends of its own pipes are not kept open by a second one that runs longer."""
    longer = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        done = subprocess.run([sys.executable, "-c", "print(1)"], stdout=subprocess.PIPE, timeout=PATIENCE)
        assert done.stdout == b"1\n"
    finally:
        longer.communicate(b"\n", timeout=PATIENCE)


def test_beside_a_gpu_nothing_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = pytest.importorskip("execnet.gateway_io")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert copied_interpreter._runs_here([sys.executable, "-c", "pass"])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert not copied_interpreter._runs_here([sys.executable, "-c", "pass"])
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a fork beside a GPU"))
    before = gateway.create_io
    copied_workers.prepare(2)
    assert gateway.create_io is before
