"""What a user types, run in this process or in one of its own.

In this process the words go through the command line's own parser and printer, and PyTorch is imported already; a
process of its own (``by=process``) spends seconds on that. Several commands that are each the first to import murp
share those seconds (:func:`each_first`).
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples import PATIENCE
from murp.cli.main import main

TRAIN = [
    "train", "--dim", "5", "--epochs", "3", "--batch-size", "16", "--negatives", "5", "--lr", "2", "--device", "cpu",
]  # fmt: skip


@dataclass
class Ended:
    """A command that is over."""

    returncode: int
    stdout: str
    stderr: str


def murp(*arguments: str | Path, cwd: Path | None = None) -> Ended:
    """A command in this process; what it does not catch is raised."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), chdir(cwd or Path.cwd()):
        try:
            status = main(list(map(str, arguments)))
        except SystemExit as stop:  # how the parser ends, after --help as after words it does not understand
            status = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    return Ended(status, out.getvalue(), err.getvalue())


def process(*arguments: str | Path, **more: Any) -> Ended:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "murp", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, **more)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def ok(*arguments: str | Path, by: Callable[..., Ended] = murp, **more: Any) -> str:
    """What a command prints that must succeed."""
    result = by(*arguments, **more)
    assert result.returncode == 0, result.stderr
    assert "Traceback" not in result.stderr
    return result.stdout


# What takes long is done before the fork. A child ends at once: to take down all that was imported takes a second.
EACH_FIRST = """
import gc, json, os, sys
import matplotlib.figure, numba, pandas, pyarrow.parquet, scipy.sparse, scipy.stats, torch
from numba.core.registry import cpu_target
cpu_target.target_context.refresh()
gc.freeze()
for words in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        from murp.cli.main import main
        status = main(words)
        sys.stdout.flush()
        os._exit(status)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit(f"failed: {words}")
    print("\\0", end="", flush=True)
"""


def each_first(*commands: list[str | Path]) -> list[str]:
    """What commands print that must succeed, each in a process that has imported other libraries, but none of murp."""
    given = json.dumps([[str(word) for word in words] for words in commands])
    ended = subprocess.run([sys.executable, "-c", EACH_FIRST, given], capture_output=True, text=True, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout.split("\0")[:-1]


def refused(*arguments: str | Path, status: int = 1, by: Callable[..., Ended] = murp, **more: Any) -> str:
    """The message of a command that must fail: no traceback, nothing on standard output."""
    result = by(*arguments, **more)
    assert (result.returncode, result.stdout) == (status, ""), result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr
