"""Suggestions are those of difflib, which compares every name."""

from __future__ import annotations

import difflib

from hypothesis import given
from hypothesis import strategies as st

from murp.graph import KnowledgeGraph
from murp.graph.names.spelling import BUCKETS, Spelling

# Characters of one bucket, and others.
LETTERS = st.text("abc.0ü木" + chr(ord("a") + BUCKETS), max_size=6)


@given(st.lists(LETTERS, unique=True, max_size=30), LETTERS, st.integers(1, 6), st.sampled_from([0.0, 0.4, 0.6, 1.0]))
def test_against_difflib(names: list[str], text: str, n: int, cutoff: float) -> None:
    assert Spelling(names).closest(text, n, cutoff) == difflib.get_close_matches(text, names, n, cutoff)


@given(st.lists(st.text(max_size=300), unique=True, max_size=5), st.text(max_size=300))
def test_any_text_is_compared(names: list[str], text: str) -> None:
    assert Spelling(names).closest(text, 3, 0.1) == difflib.get_close_matches(text, names, 3, 0.1)


def test_typing_errors_in_wordnet() -> None:
    entities = KnowledgeGraph.load("wordnet-mini").entities
    names = sorted({entities.name(i).lower() for i in range(len(entities))})
    spelling = Spelling(names)
    for text in ("asai", "chiar", "dolphn", "electroencefalograph", "qqzz", "x", "united states of amerika", "ö"):
        assert spelling.closest(text, 5, 0.6) == difflib.get_close_matches(text, names, 5, 0.6)
    assert "Asia [asia.n.01]" in entities.closest("asai")
