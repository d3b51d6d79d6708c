"""The numbers in the README and on the page about types are those of the stored results."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import figures

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.usefixtures("copied")
def test_the_numbers_of_the_pages_come_from_the_stored_results() -> None:
    assert subprocess.run([sys.executable, ROOT / "tools" / "figures.py", "--check"]).returncode == 0


def test_what_a_newcomer_needs_is_told_as_it_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"installed": 1.35, "environment": 1.4, "PyTorch": 0.5, figures.TOOLS: 2.9}
    stored = {
        "figures": {
            "seconds": {"installed": 61.2, "first prediction": 92.6, "end": 95.0},
            "bytes": {name: many * 2**30 for name, many in sizes.items()},
        },
        "settings": {"torch": "2.0", "local_packages": True},
        "machine": {"cores": 2, "device": "a processor"},
    }
    monkeypatch.setattr(figures, "result", lambda name: stored)
    monkeypatch.setattr(figures, "code", lambda *_: "commit c")
    told = figures.newcomer()
    for words in (
        "93 s to its first",
        "61 s of them",
        "takes 1.35 GiB, and 1.40 GiB after the first run",
        "2.0 takes 0.50 GiB",
        "takes 2.90 GiB",
        "local folder",
    ):
        assert words in told
