"""Names of a large graph are found as those of a small one, without Python's own copies of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp.graph import Vocabulary
from murp.web import names
from murp.web.names import Index, LargeIndex, index_of

texts = st.text("ab:é", min_size=1, max_size=2)


@settings(max_examples=at_most(60), deadline=None)
@given(
    ids=st.lists(texts, min_size=1, max_size=8, unique=True),
    called=st.none() | st.lists(st.none() | texts, min_size=8, max_size=8),
    asked=st.lists(texts, max_size=8),
)
def test_a_large_index_answers_as_a_small_one(
    ids: list[str], called: list[str | None] | None, asked: list[str]
) -> None:
    vocabulary = Vocabulary("entity", ids, None if called is None else called[: len(ids)])
    small, large = Index(vocabulary), LargeIndex(vocabulary)
    assert len(small) == len(large)
    assert [small.reference(i) for i in range(len(ids))] == [large.reference(i) for i in range(len(ids))]
    assert list(large.ids[:2]) == list(small.ids[:2])
    for text in [*ids, *asked, *(name for name in called or () if name is not None)]:
        assert small.known(text) == large.known(text)
        if small.known(text) is None:
            assert small.sharing(text) == large.sharing(text)


def test_the_size_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = Vocabulary("entity", ["a", "b"])
    assert type(index_of(vocabulary)) is Index
    monkeypatch.setattr(names, "MANY", 1)
    assert type(index_of(vocabulary)) is LargeIndex
