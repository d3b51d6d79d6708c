"""The page of the field is that of the stored results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import field_page


def test_the_page_comes_from_the_stored_results() -> None:
    assert field_page.main(["--check"]) == 0, "run `make figures`"


def stored(folder: Path, name: str, seed: int, mrr: float, device: str = "cuda", jobs: int = 1, **others: Any) -> None:
    (row,) = (row for row in field_page.rows() if row.name == name)
    metrics = {"mrr": mrr, "hits@1": 0.25, "hits@3": 0.375, "hits@10": 0.5}
    figures = {
        "parameters": 1_637_720, "seconds": 9.87, "side_by_side": jobs, "auto": "fb15k-237",
        "test": {"standard": metrics}, "valid": {"standard": metrics},
    }  # fmt: skip
    settings = {**row.config(seed).to_dict(), "device": device, **others}
    values = {
        "settings": settings,
        "figures": figures,
        "date": "2026-01-01T00:00:00Z",
        "commit": "a" * 40,
        "clean": True,
    }
    (folder / f"{name}-seed{seed}.json").write_text(json.dumps({**values, "source": "1" * 12}))


def timed(folder: Path, name: str, kind: str = "times", **changes: Any) -> None:
    """The stored time of a row's steps on a processor, or on a GPU."""
    (folder / kind).mkdir(exist_ok=True)
    result = json.loads((folder / f"{name}-seed0.json").read_text())
    result["settings"] |= changes
    result |= {"figures": {"expected_seconds": 300.0}, "machine": {"cores": 2}}
    (folder / kind / f"{name}.json").write_text(json.dumps(result))


def line(page: str, start: str) -> list[str]:
    (found,) = (text for text in page.splitlines() if text.startswith(f"| {start} |"))
    return [cell.strip() for cell in found.strip("|").split("|")]


def test_a_row_has_means_over_seeds_times_and_what_was_published(tmp_path: Path) -> None:
    for seed, mrr in ((0, 0.470), (1, 0.476)):
        stored(tmp_path, "wn18rr-complex-d200", seed, mrr)
    stored(tmp_path, "wn18rr-transe-d200", 0, 0.1, jobs=8)
    stored(tmp_path, "wn18rr-conve-d200", 0, 0.4, lr=0.7)  # by settings that the row no longer has
    timed(tmp_path, "wn18rr-complex-d200")
    timed(tmp_path, "wn18rr-transe-d200", lr=0.7)  # by settings that the row no longer has
    page = field_page.page(tmp_path)
    assert line(page, "complex")[1:9] == [
        "0.473 ± 0.0042", "0.250", "0.375", "0.500", "2", "1,637,720", "9.87 s", "5 min, 2 cores",
    ]  # fmt: skip
    assert line(page, "complex")[10:] == ["0.475", "0.547", "128", "`standard`", "libkge"]
    assert line(page, "transe")[7:9] == ["9.87 s (beside 7 others)", "–"]
    assert "times/wn18rr-complex-d200" in page.partition("## Where")[2]
    assert page.index("| complex |") < page.index("| transe |"), "best first"
    assert "murp train --data WN18RR --dim 200 --model complex" in page
    assert "wn18rr-conve-d200" in page.partition("## Not measured yet")[2]
    assert "wn18rr-complex-d200," not in page.partition("## Not measured yet")[2].partition("## Where")[0]


def test_a_row_trained_beside_others_has_the_time_of_its_steps_alone(tmp_path: Path) -> None:
    for name, jobs in (("wn18rr-complex-d200", 8), ("wn18rr-transe-d200", 1)):
        stored(tmp_path, name, 0, 0.4, jobs=jobs)
        timed(tmp_path, name, "times-gpu")
    page = field_page.page(tmp_path)
    assert line(page, "complex")[7] == "300 s (steps)"
    assert line(page, "transe")[7] == "9.87 s", "a whole training alone says more than its steps"
    assert "times-gpu/wn18rr-complex-d200" in page.partition("## Where")[2]


def test_what_auto_takes_is_judged_on_valid(tmp_path: Path) -> None:
    stored(tmp_path, "umls-recipe-wn18rr-d40", 0, 0.88)
    stored(tmp_path, "umls-recipe-fb15k-237-d40", 0, 0.91)
    page = field_page.page(tmp_path)
    assert "| UMLS | wn18rr | 0.880 | 1 |  |" in page
    assert "| UMLS | fb15k-237 | 0.910 | 1 | yes |" in page


def test_the_papers_own_models_have_the_papers_figures() -> None:
    rows = {row.name: row for row in field_page.rows()}
    assert field_page.theirs(rows["wn18rr-murp-d40"]) == ["0.477", "0.555", "40", "`paper`", "murp"]
    assert field_page.theirs(rows["umls-murp-d40"]) == ["–"] * 5
