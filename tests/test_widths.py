"""Widths of text, and tables that stand straight whatever the script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from murp.cli.text import table
from murp.widths import columns, shortened

LETTERS = "ab é東京서नق🦄e\u0301"
WORDS = st.text(st.sampled_from(LETTERS), max_size=60)


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("東京", 4), ("서울", 4), ("e\u0301", 1), ("ﾊ", 1), ("🦄", 2)],
)
def test_columns_of_a_terminal(text: str, width: int) -> None:
    assert columns(text) == width


@given(WORDS, st.integers(4, 50))
def test_what_is_shortened_fits_and_keeps_both_ends(text: str, most: int) -> None:
    short = shortened(text, most)
    line = " ".join(text.split())
    assert columns(short) <= most
    if columns(line) <= most:
        assert short == line
    else:
        start, end = short.split("…")
        assert line.startswith(start)
        assert line.endswith(end)
        assert columns(short) >= most - 2  # a wide letter may not have fitted at either end


@given(st.text(st.sampled_from(LETTERS + "\u200d\ufe0f❤"), max_size=60), st.integers(4, 50))
def test_what_is_shortened_fits_where_letters_join_others(text: str, most: int) -> None:
    assert columns(shortened(text, most)) <= most


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_the_columns_of_a_table_begin_and_end_one_under_the_other(rows: list[tuple[str, str]]) -> None:
    marked = [(f"{left}|", f"{right}|") for left, right in rows]
    lines = table(["|", "|"], marked, right=(1,)).splitlines()
    assert len(lines) == len(rows) + 1
    assert len({columns(line) for line in lines}) == 1
