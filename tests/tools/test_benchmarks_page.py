"""The page of benchmarks is that of the stored results."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import benchmarks_page


def test_page_and_plot_come_from_the_stored_results() -> None:
    assert benchmarks_page.up_to_date(), "run `make figures`"


def test_every_picture_of_the_page_is_there() -> None:
    for name in re.findall(r"!\[.*?\]\((.*?)\)", benchmarks_page.page()):
        assert (benchmarks_page.DOCS / name).exists()


def test_a_changed_result_makes_page_and_plot_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks_page, "RESULTS", tmp_path)
    monkeypatch.setattr(benchmarks_page, "DOCS", tmp_path)
    spread = {"median": 1e-3, "least": 1e-3, "most": 2e-3, "repeats": 3}
    stored = {
        "what": "a step",
        "settings": {"data": "toy", "dim": 4, "batch_size": 2},
        "figures": {
            "seconds_a_step": {"murp, numba": spread, "murp, textbook": {**spread, "median": 5e-2}},
            "epoch_seconds": {"murp, numba": 1.0, "murp, textbook": 50.0},
            "times_faster": {"numba against textbook": 50.0},
            "left_out": {},
        },
        "machine": {"device": "a CPU", "cores": 2, "murp": "0", "torch": "2"},
        "date": "2026-01-01T00:00:00Z",
    }

    def store() -> None:
        (tmp_path / "cpu_step.json").write_text(json.dumps(stored))

    store()
    monkeypatch.setattr("sys.argv", ["benchmarks_page.py"])
    assert not benchmarks_page.up_to_date()
    benchmarks_page.main()
    assert benchmarks_page.up_to_date()
    assert "| MuRP, textbook | 50.0 ms (1.00 ms to 2.00 ms) | 50.0 s | 50 times |" in benchmarks_page.page()
    assert "| 40 times or more | 50 times | yes |" in benchmarks_page.page()
    spread["median"] = 2e-3
    store()
    assert not benchmarks_page.up_to_date()
    (tmp_path / "benchmarks.md").write_text(benchmarks_page.page())
    assert not benchmarks_page.up_to_date(), "the plot is still the old one"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (9.313e-6, "9.31 µs"),
        (1.2e-3, "1.20 ms"),
        (0.0304, "30.4 ms"),
        (6.4, "6.40 s"),
        (387.9, "388 s"),
        (1e-8, "0.0100 µs"),
        (0.9996, "1.00 s"),
        (99.99, "100 s"),
    ],
)
def test_times_have_their_unit(seconds: float, shown: str) -> None:
    assert benchmarks_page.time(seconds) == shown
