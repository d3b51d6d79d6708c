"""The page of protocols is that of the stored result, and its sentences follow from the figures."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

import benchmark_results
import origins
import protocols_page

KINDS = (protocols_page.UNCHECKED, protocols_page.TRAIN, protocols_page.ALL)


def ranked(mrr: float, **others: float) -> dict[str, Any]:
    """What the harness says of one run: ``mrr`` under standard, and what else differs from it."""
    names = ("standard", *protocols_page.EFFECTS)
    told: dict[str, Any] = {
        name: {"mrr": mrr + others.get(name.replace(" ", "_"), 0.0), "queries": 200} for name in names
    }
    halves = {
        name: {"mrr": mrr + place} for name, place in (("ties in favour", 0.1), ("standard", 0), ("ties against", 0))
    }
    unseen = {"facts": int(others.get("facts", 0)), "entities": 7}
    return told | {"in bfloat16": halves, "tied": {"queries": 0, "in bfloat16": 50}, "unseen": unseen}


def of_runs(*figures: dict[str, Any]) -> list[dict[str, Any]]:
    settings = {"model": "hybonet", "dim": 40, "data": "toy"}
    return [{"seed": i, "epoch": 5, "seconds": 2.0, "settings": settings, "test": one} for i, one in enumerate(figures)]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(benchmark_results, "RESULTS", tmp_path)
    monkeypatch.setattr(benchmark_results, "DOCS", tmp_path)
    monkeypatch.setattr(origins, "ROOT", tmp_path)  # no repository: git would look at every commit of ours

    def store(*by_kind: list[dict[str, Any]], name: str = "toy") -> str:
        trainings = [{"name": "HyboNet", "data": name, "by_negatives": dict(zip(KINDS, by_kind, strict=True))}]
        machine = {"device": "a CPU", "cores": 2, "murp": "0", "torch": "2"}
        figures = {"trainings": trainings if by_kind else [], "runs": []}
        values = {"what": "", "settings": {}, "figures": figures, "machine": machine, "date": "2026-01-01T00:00:00Z"}
        (tmp_path / f"protocols_{name}.json").write_text(json.dumps(values))
        return protocols_page.page()

    return store


def test_the_page_comes_from_the_stored_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["protocols_page.py", "--check"])
    assert protocols_page.main() == 0, "run `make figures`"


def test_a_changed_result_makes_the_page_stale(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["protocols_page.py"])
    assert "Nothing was measured yet." in protocols_page.page()
    for mrr in (0.4, 0.5):
        assert "Nothing was measured yet." not in store(*(of_runs(ranked(mrr)) for _ in KINDS))
        assert not protocols_page.up_to_date()
        protocols_page.main()
        assert protocols_page.up_to_date()


def test_what_changes_nothing_is_said_to_change_nothing(store: Any) -> None:
    text = store(*(of_runs(ranked(0.4)) for _ in KINDS))
    for start in protocols_page.EFFECTS.values():
        assert f"{start} changes no MRR by .0005 or more (3 sets of weights)." in text
    assert "HyboNet on toy: knowing the facts of valid and test changes MRR by less than .0005." in text
    assert "toy: train has every entity of the 100 test facts, so nothing is dropped." in text
    assert "With scores as they are the choice changes no MRR by .0005 or more." in text
    assert "In bfloat16 the MRR in favour is above the MRR against by .100." in text


def test_what_changes_something_is_said_with_its_sign_and_range(store: Any) -> None:
    up, down = ranked(0.4, subject_out=0.01, ties_against=-0.02, facts=5), ranked(0.4, subject_out=-0.03)
    text = store(of_runs(up), of_runs(down), of_runs(ranked(0.35)))
    assert (
        "Taking the entity of the question out of its ranking changes MRR by -.030 to +.010 (3 sets of weights)."
        in text
    )
    assert "Ranking ties against the model changes MRR by -.020 to .000 (3 sets of weights)." in text
    assert "toy: 5 of 100 test facts (5.0%) have an entity that train does not have; 7 entities are then" in text
    assert "changes MRR by -.050 (one seed each, so the spread over seeds is not known)." in text
    assert "| HyboNet | toy | 1 | .400 | .400 | .350 | -.050 | -.020 |" in text


def test_results_of_several_graphs_are_one_page(store: Any) -> None:
    store(*(of_runs(ranked(0.4, subject_out=0.01)) for _ in KINDS))
    text = store(*(of_runs(ranked(0.3, subject_out=0.02)) for _ in KINDS), name="other")
    assert (
        "Taking the entity of the question out of its ranking changes MRR by +.010 to +.020 (6 sets of weights)."
        in text
    )
    assert "| HyboNet | toy | 1 | .400 |" in text
    assert "| HyboNet | other | 1 | .300 |" in text
    assert "| commit not recorded | 2 | protocols_other, protocols_toy |" in text


@pytest.mark.parametrize(("lowest", "words"), [(0.44, "do not overlap"), (0.41, "overlap")])
def test_the_leak_is_told_with_the_spread_over_seeds(store: Any, lowest: float, words: str) -> None:
    honest = of_runs(ranked(0.40), ranked(0.42))
    text = store(copy.deepcopy(honest), honest, of_runs(ranked(lowest), ranked(0.46)))
    assert (
        f"over 2 seeds the values are .400 to .420 and {protocols_page.decimals(lowest)} to .460, which {words}."
        in text
    )
    assert f"changes MRR by {protocols_page.signed((lowest + 0.46) / 2 - 0.41)};" in text
