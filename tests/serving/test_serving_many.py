"""A server among millions of entities starts without looking at all of them."""

from __future__ import annotations

from typing import Any

import pytest

from murp.models import Model
from murp.prediction import answers
from murp.runs import Run
from murp.serving import loaded


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
