"""A server among millions of entities: it starts without looking at all of them, and may ask the index."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import murp
from examples import PATIENCE
from murp.errors import RunError
from murp.models import Model
from murp.prediction import answers, approximate
from murp.prediction.approximate import Index
from murp.runs import Run
from murp.serving import current, loaded

QUESTIONS: list[Any] = [
    {"head": "n9", "relation": "parent"},
    {"relation": "parent", "tail": "n3", "k": 3, "new_only": True},
    {"head": "n9", "relation": "parent", "types": True},
]


@pytest.fixture
def indexed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run, with an index of one cell: everything is looked into."""
    pytest.importorskip("faiss")
    monkeypatch.setattr(approximate, "QUESTIONS", 20)
    path = Path(shutil.copytree(run.path, tmp_path / "run"))
    murp.load(path, device="cpu").index(cells=1)
    return path


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The subject of each question that is answered by an index."""
    asked, best = [], Index.best

    def counting(index: Index, model: Model, subject: int, *rest: Any) -> Any:
        asked.append(subject)
        return best(index, model, subject, *rest)

    monkeypatch.setattr(Index, "best", counting)
    return asked


@pytest.mark.parametrize("times", [1, 10], ids=["alone", "together"])
def test_answers_are_those_of_the_index(indexed: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    found = []
    for by_index in (False, True):
        with murp.serve(indexed, approximate=by_index, timeout=PATIENCE) as served:
            asked.clear()
            given = murp.Client(served.address, timeout=PATIENCE).predict(QUESTIONS * times)
        found.append([[(p.id, round(p.score, 4), p.known) for p in one.predictions] for one in given])
        assert len(asked) == by_index * len(QUESTIONS) * times
    assert found[0] == found[1]


def test_candidates_are_ranked_exactly(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = counted(monkeypatch)
    with murp.serve(indexed, approximate=True, timeout=PATIENCE) as served:
        asked.clear()
        client = murp.Client(served.address, timeout=PATIENCE)
        found = client.ask(head="n9", relation="parent", candidates=["n3", "n4"])
    assert {one.id for one in found} == {"n3", "n4"}
    assert asked == []


def test_a_run_without_an_index_is_refused(run: Run) -> None:
    with pytest.raises(RunError, match=r"has no index for approximate answers. Run `murp index"):
        murp.serve(run.path, approximate=True)


def test_a_new_run_without_an_index_does_not_take_the_place_of_one_with(
    indexed: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    served = current.Current(indexed, None, "cpu", approximate=True)
    before = served.loaded
    shutil.rmtree(indexed / "index")
    served.renew()
    assert served.loaded is before
    assert "has no index for approximate answers" in str(served.error)
    assert "the one before it still is" in capsys.readouterr().err


def test_the_start_looks_at_some_of_many_entities(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise it would read all weights that are mapped."""
    looked, search = [], loaded.top_objects

    def some(model: Model, *rest: Any) -> Any:
        looked.append({len(model.parameters[name]) for name in ("entity", "subject_bias", "object_bias")})
        return search(model, *rest)

    for module in (loaded, answers):
        monkeypatch.setattr(module, "MANY", 20)
    monkeypatch.setattr(loaded, "SOME", 16)
    monkeypatch.setattr(loaded, "top_objects", some)
    for name in ("to_one", "best"):
        monkeypatch.setattr(answers.Answers, name, None)
    held = loaded.Loaded(run)
    assert looked == [{16}]
    monkeypatch.undo()
    found = held.answers(types=False).to_one(9, 0, 5)
    assert found.entities.tolist() == answers.Answers(run.model, run.graph).to_one(9, 0, 5).entities.tolist()
