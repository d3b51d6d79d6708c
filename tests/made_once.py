"""What several processes of a test run need and one of them makes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

try:
    import fcntl
except ImportError:  # every process makes its own
    fcntl = None  # type: ignore[assignment]


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder ``name``, which ``make`` fills; the first process that asks does this, and the others wait for it.

    No test may write into it. Where making it fails, the next one tries again, so that every test tells of the error.
    """
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    if fcntl is None:
        make(folder := factory.mktemp(name))
        return folder
    base = factory.getbasetemp() if alone else factory.getbasetemp().parent  # of all processes
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(FileNotFoundError):
            return Path((base / f"{name}.made").read_text())
        make(folder := factory.mktemp(name))
        (base / f"{name}.made").write_text(str(folder))
    return folder
