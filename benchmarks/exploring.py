"""An explorer in its own process, for measurements and screenshots."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exploring(*runs: str) -> Iterator[str]:
    """The address of an explorer of these run folders."""
    command = [sys.executable, "-m", "murp", "explore", *runs, "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().split()[1]
    finally:
        process.terminate()
        process.wait()
