"""The page of reliability is that of the stored results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import origins
import reliability_page

MACHINE = {"device": "a CPU", "cores": 2, "murp": "0", "torch": "2"}


def test_the_page_comes_from_the_stored_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["reliability_page.py", "--check"])
    assert reliability_page.main() == 0, "run `make figures`"


def test_every_stored_result_is_on_the_page() -> None:
    files = {file.stem.removeprefix("reliability_") for file in reliability_page.RESULTS.glob("reliability_*.json")}
    assert files <= set(reliability_page.promises())


@pytest.mark.parametrize(
    ("settings", "seeds", "by"),
    [({"seed": 61125}, {}, "seed 61125"), ({}, {"seeds": [2, 11]}, "seeds 2, 11")],
)
def test_a_sample_says_what_share_of_the_whole_it_is(settings: Any, seeds: Any, by: str) -> None:
    """Files of before the share was stored, too."""
    module = {"exist": 40, "tried": 10, "killed": 9, "survivors": [], **seeds}
    figures = {"modules": {"ranks": module}, "together": {"all": {"exist": 40, "tried": 10, "killed": 9}}}
    found = {"settings": settings, "figures": figures, "machine": MACHINE, "date": "2026-01-01T00:00:00Z"}
    text = "\n".join(reliability_page.section({"title": "a", "promised": "b", "tested": "c"}, found))
    assert f"10 of 40 possible changes were tried, 25%, drawn module by module ({by})" in text
    assert "| modules | exist | tried | share tried | killed |" in text
    assert "| ranks | 40 | 10 | 0.25 | 9 |" in text
    assert "| all | 40 | 10 | 0.25 | 9 |" in text


def test_a_changed_result_makes_the_page_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reliability_page, "RESULTS", tmp_path)
    monkeypatch.setattr(reliability_page, "PAGE", tmp_path / "reliability.md")
    monkeypatch.setattr(origins, "ROOT", tmp_path)  # no repository: git would look at every commit of ours
    figures: dict[str, Any] = {
        "kills": 1200,
        "failures": 0,
        "what_failed": [],
        "kinds_of_failure": [{"what": "it stopped"}],
        "slowest_ms": 12.345,
        "total": {"kills": 1200, "runs": 7},
        "by_engine": {"torch": {"kills": 700, "runs": 3}, "numba": {"kills": 500}},
        "modules": {"ranks": {"tried": 2, "survivors": [{"key": "a < b | c", "explanation": "the same"}]}},
    }

    def store() -> None:
        values = {"settings": {"seed": 0}, "figures": figures, "machine": MACHINE, "date": "2026-01-01T00:00:00Z"}
        (tmp_path / "reliability_crash.json").write_text(json.dumps(values))

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["reliability_page.py", *arguments])
        return reliability_page.main()

    store()
    assert run("--check") == 1
    assert run() == 0
    assert run("--check") == 0
    text = (tmp_path / "reliability.md").read_text()
    for line in (
        "| [No lost work](#no-lost-work) | 1,200 kills in 7 runs: 0 failures |",
        "| Bad input is refused | not measured yet |",
        "| kills | 1,200 |",
        "| kinds of failure | what |",
        "| 1 | it stopped |",
        "| slowest, ms | 12.3 |",
        "| by engine | kills | runs |",
        "| torch | 700 | 3 |",
        "| numba | 500 |  |",
        "| ranks | 2 | 1 |",
        "| `a < b \\| c` | the same |",
    ):
        assert line in text
    assert "what failed" not in text
    assert "| commit not recorded | 1 | reliability_crash |" in text
    assert "Not measured yet" in text
    assert "**1 promises were tested, and no test failed.**" in text
    figures["failures"] = 2
    store()
    assert run("--check") == 1
    assert "**1 of 1 tested promises have failures: No lost work.**" in reliability_page.page()


def test_the_page_lists_the_kinds_of_processor_before_and_after_the_choices_of_instructions_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reliability_page, "RESULTS", tmp_path)

    def store(name: str, device: str, figures: Any) -> None:
        values = {"settings": {}, "figures": figures, "machine": {**MACHINE, "device": device}, "date": "2026-01-01"}
        (tmp_path / f"{name}.json").write_text(json.dumps(values))

    (tmp_path / "intel").mkdir()
    store("intel/cpu_step", "Intel Xeon", {})
    store("reliability_ties", "AMD EPYC", {"torch": {"shapes": 10_000, "untied": 0}})
    text = reliability_page.page()
    title = "## The same results on every processor"
    assert f"{title}\n" in text
    assert "| AMD EPYC | 1 | reliability_ties |\n| Intel Xeon | 1 | intel/cpu_step |\n\nNot measured yet." in text
    assert "| torch | 10,000 | 0 |" in text
    store("reliability_instructions", "AMD EPYC", {"MKL_CBWR=COMPATIBLE": {"passed": 900, "failed": 0}})
    text = reliability_page.page()
    assert text.count(title) == 1
    assert "| AMD EPYC | 2 | reliability_instructions, reliability_ties |" in text
    assert "| MKL_CBWR=COMPATIBLE | 900 | 0 |" in text
