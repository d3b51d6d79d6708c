"""The harness that kills single ranks runs, in a toy size, and finds nothing."""

from __future__ import annotations

from pathlib import Path

from test_crash import stored


def test_a_run_whose_ranks_are_killed_ends_as_one_in_peace(tmp_path: Path) -> None:
    figures = stored("dead_ranks.py", tmp_path / "it.json")["figures"]
    assert figures["kills"] >= 2
    assert figures["failures"] == 0
