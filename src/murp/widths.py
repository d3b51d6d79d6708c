"""How wide a text is where every letter has the same width, as in a terminal."""

from __future__ import annotations

import unicodedata


def columns(text: str) -> int:
    """The columns a terminal gives a text: two for each of 東京, none for an accent that joins the letter before it."""
    return sum(_width(character) for character in text)


def shortened(text: str, most: int = 40) -> str:
    """``text`` on one line, in at most ``most`` columns: of what is longer the beginning and the end, … between."""
    text = " ".join(text.split())
    if columns(text) <= most:
        return text
    end = _beginning(text[::-1], (most - 1) // 3)[::-1]
    return f"{_beginning(text, most - 1 - columns(end))}…{end}"


def _beginning(text: str, most: int) -> str:
    taken = 0
    for at, character in enumerate(text):
        taken += _width(character)
        if taken > most:
            return text[:at]
    return text


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
