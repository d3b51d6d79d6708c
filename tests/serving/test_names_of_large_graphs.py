"""Names of a large graph are found as those of a small one, without Python's own copies of them and without scans."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp.graph import Vocabulary
from murp.serving import parsing
from murp.serving.limits import Limits
from murp.web import names
from murp.web.names import Index, LargeIndex, index_of
from murp.web.refusals import Refused

texts = st.text("ab:é\u0301", min_size=1, max_size=2)  # é, and e with an accent, are two names
vocabularies = st.builds(
    lambda ids, called: Vocabulary("entity", ids, None if called is None else called[: len(ids)]),
    st.lists(texts, min_size=1, max_size=8, unique=True),
    st.none() | st.lists(st.none() | st.just("") | texts, min_size=8, max_size=8),
)
RELATIONS = Index(Vocabulary("relation", ["r"]))
HALVES = ["\ud800", "a\udfff"]  # no text that could be written as UTF-8


def loaded(entities: Index) -> Any:
    """As much of a run as is needed to look names up."""
    return SimpleNamespace(entities=entities, relations=RELATIONS, types=False)


def outcome(work: Coroutine[Any, Any, Any]) -> Any:
    """What it gives, or what it says to a client whom it refuses."""
    try:
        return asyncio.run(work)
    except Refused as refused:
        return refused.response.status_code, refused.response.body


@settings(max_examples=at_most(60), deadline=None)
@given(vocabulary=vocabularies, asked=st.lists(texts, max_size=8))
def test_a_large_index_answers_as_a_small_one(vocabulary: Vocabulary, asked: list[str]) -> None:
    small, large = Index(vocabulary), LargeIndex(vocabulary)
    assert len(small) == len(large)
    assert [small.reference(i) for i in range(len(small))] == [large.reference(i) for i in range(len(small))]
    assert list(large.ids[:2]) == list(small.ids[:2])
    assert list(large.names[1:]) == list(small.names[1:])
    for text in [*small.ids, *small.names, *asked, *HALVES, ""]:
        assert small.known(text) == large.known(text)
        if small.known(text) is None:
            assert small.sharing(text) == large.sharing(text)


@settings(max_examples=at_most(60), deadline=None)
@given(vocabulary=vocabularies, data=st.data())
def test_a_request_is_read_and_refused_as_with_a_small_index(vocabulary: Vocabulary, data: st.DataObject) -> None:
    small, large = Index(vocabulary), LargeIndex(vocabulary)
    known = st.sampled_from([*small.ids, *small.names])
    some = st.lists(st.one_of(known, known, known, texts), min_size=1, max_size=4)
    candidates, pairs = data.draw(some), data.draw(some)
    asked = {"questions": [{"head": text, "relation": "r"} for text in pairs], "candidates": candidates}
    triples = [[text, "r", candidates[0]] for text in pairs]
    read = []
    for index in (small, large):
        questions = outcome(parsing.questions(asked, loaded(index), Limits()))
        if isinstance(questions, list):
            questions = [
                (one.given, one.row, None if one.candidates is None else [*one.candidates]) for one in questions
            ]
        rows = outcome(parsing.triples(triples, loaded(index), Limits()))
        read.append((questions, rows.tolist() if isinstance(rows, np.ndarray) else rows))
    assert read[0] == read[1]


def test_a_name_that_many_share_is_refused_with_the_first_of_them() -> None:
    vocabulary = Vocabulary("entity", [f"n{i}" for i in range(500)], ["it"] * 500)
    refused = [outcome(names.find(made(vocabulary), "it", parsing.ADVICE)) for made in (Index, LargeIndex)]
    assert refused[0] == refused[1]
    assert b"500 ids share it (n0, n1" in refused[1][1]
    assert refused[1][1].count(b"it [n") == names.SHOWN


def test_no_request_looks_through_all_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a graph with millions a look through all would take as long as an answer, and a request has many names."""
    scans: list[str] = []
    for name in ("index", "index_in", "is_in", "equal", "match_substring", "starts_with", "find_substring"):
        scan = getattr(pc, name)
        monkeypatch.setattr(pc, name, lambda *of, scan=scan, name=name, **how: scans.append(name) or scan(*of, **how))
    vocabulary = Vocabulary("entity", [f"n{i}" for i in range(900)], [f"node {i // 2}" for i in range(900)])
    run = loaded(LargeIndex(vocabulary))
    every = [f"n{i}" for i in range(900)]
    asked = {"questions": [{"tail": text, "relation": "r"} for text in every], "candidates": every}
    assert len(asyncio.run(parsing.questions(asked, run, Limits()))) == 900
    assert len(asyncio.run(parsing.triples([[text, "r", text] for text in every], run, Limits()))) == 900
    assert scans == []
    unknown = {"questions": [{"tail": "nobody", "relation": "r"}] * 900, "candidates": every}
    assert outcome(parsing.questions(unknown, run, Limits()))[0] == 404
    assert 0 < len(scans) < 9, "the first that is unknown ends it; for that one all names are compared"


@pytest.mark.parametrize("text", ["it", "nobody"])
def test_what_looks_through_all_names_leaves_the_server_free(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared and an unknown name are looked for in a thread of their own."""
    where: list[str] = []
    for name in ("find", "closest"):
        search = getattr(Vocabulary, name)
        monkeypatch.setattr(
            Vocabulary, name, lambda *of, search=search: where.append(threading.current_thread().name) or search(*of)
        )
    run = LargeIndex(Vocabulary("entity", ["a", "b"], ["it", "it"]))
    assert outcome(names.find(run, text, parsing.ADVICE))[0] == 404
    assert len(where) == 1
    assert where[0].startswith("murp-searches")


def test_candidates_are_kept_once_each_in_ascending_order() -> None:
    run = loaded(LargeIndex(Vocabulary("entity", ["a", "b", "c"], [None, "two", "three"])))
    question = {"head": "a", "relation": "r", "candidates": ["three", "a", "c", "b", "two", "a"]}
    (asked,) = asyncio.run(parsing.questions([question], run, Limits()))
    assert asked.candidates is not None
    assert asked.candidates.tolist() == [0, 1, 2]


def test_others_have_a_turn_while_names_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many names, wherever in a request they are."""
    monkeypatch.setattr(parsing, "TURN", 10)
    run = loaded(LargeIndex(Vocabulary("entity", [f"n{i}" for i in range(20)])))
    few = [{"head": "n1", "relation": "r", "candidates": ["n1", "n2", "n3"]}] * 20
    assert turns(parsing.questions(few, run, Limits())) == 20 * 5 // 10
    assert turns(parsing.questions({"questions": [], "candidates": ["n3"] * 100}, run, Limits())) == 10
    assert turns(parsing.triples([["n1", "r", "n2"]] * 50, run, Limits())) == 50 * 3 // 10


def turns(work: Coroutine[Any, Any, Any]) -> int:
    """How often it lets others go on before it is done."""
    number = 0
    try:
        while True:
            work.send(None)
            number += 1
    except StopIteration:
        return number


def test_the_size_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary("entity", ["a", "b"])
    assert type(index_of(vocabulary)) is Index
    monkeypatch.setattr(names, "MANY", 1)
    assert type(index_of(vocabulary)) is LargeIndex
