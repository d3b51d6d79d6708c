"""Where texts are among many, against a look at each of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import at_most
from murp.graph.large.text_lookup import TextLookup

texts = st.text("ab\0é\u0301𝄞", max_size=10)


@settings(max_examples=at_most(60), deadline=None)
@given(
    before=st.lists(st.none() | texts, max_size=3),
    held=st.lists(st.none() | texts, min_size=1, max_size=30),
    asked=st.lists(texts, max_size=8),
    most=st.integers(1, 4),
)
def test_every_place_of_a_text_is_found(
    before: list[str | None], held: list[str | None], asked: list[str], most: int
) -> None:
    """The first of them in ascending order; also in an array that begins inside another, as a slice does."""
    places = TextLookup(pa.array(before + held, pa.large_string())[len(before) :])
    for text in [*asked, *(text for text in held if text is not None)]:
        assert places.of(text, most) == [i for i, other in enumerate(held) if other == text][:most]


@pytest.mark.parametrize("half", ["\ud800", "a\udfff", "\ud800\udc00"])
def test_half_a_character_is_nowhere(half: str) -> None:
    """Not even two halves side by side, which UTF-16 would take for a character."""
    assert TextLookup(pa.array(["a", "𐀀", "", None], pa.large_string())).of(half, 3) == []


@pytest.mark.parametrize("number", [1000, 1023, 1024, 100_000])
@pytest.mark.parametrize("form", ["{}", "Q{}", "http://www.wikidata.org/entity/Q{}", "{} of many with a long end"])
def test_a_text_is_compared_with_few_others_however_many_there_are(form: str, number: int) -> None:
    """With all texts of its list: four on average over the texts would be many, and a bad hash has thousands."""
    places = TextLookup(pa.array([form.format(i) for i in range(number)], pa.large_string()))
    lengths = np.diff(places.starts).astype(np.int64)
    assert lengths.sum() == number
    assert (lengths**2).sum() < 4 * number
    assert 4 * (len(places.starts) + len(places.order)) <= 8 * number + 4, "bytes of memory"


def test_a_name_that_half_of_a_million_share_is_found_and_so_are_the_others() -> None:
    """Made in a time that does not grow with the square of the number, or this test would never end."""
    number = 1_000_000
    places = TextLookup(
        pa.array([None if i % 4 == 0 else "it" if i % 2 else f"n{i}" for i in range(number)], pa.large_string())
    )
    assert places.of("it", 10) == list(range(1, 20, 2))
    assert [places.of(f"n{i}", 2) for i in range(2, number, 99_996)] == [[i] for i in range(2, number, 99_996)]
    assert places.of("n4", 1) == []
