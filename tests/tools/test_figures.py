"""The numbers in the README and on the page about types are those of the stored results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("copied")
def test_the_numbers_of_the_pages_come_from_the_stored_results() -> None:
    assert subprocess.run([sys.executable, ROOT / "tools" / "figures.py", "--check"]).returncode == 0
