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
    stored = {
        "figures": {
            "seconds": {"installed": 61.2, "first prediction": 92.6, "end": 95.0},
            "bytes": {"environment": 1_440_000_000, "PyTorch": 7e8, figures.TOOLS: 2_900_000_000},
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
        "takes 1.4 GB",
        "2.0 takes 0.7 GB",
        "takes 2.9 GB",
        "local folder",
    ):
        assert words in told
