"""A copy in place of a new interpreter is started, given its words and ended as that would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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
