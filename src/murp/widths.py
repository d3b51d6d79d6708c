"""How wide a text is where every letter has the same width, as in a terminal."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from rich.cells import cell_len


def columns(text: str) -> int:
    """The columns a terminal gives a text: two for each of 東京, none for an accent that joins the letter before it."""
    return cell_len(text)


def shortened(text: str, most: int = 40) -> str:
    """``text`` on one line, in at most ``most`` columns: of what is longer the beginning and the end, … between."""
    text = " ".join(text.split())
    if columns(text) <= most:
        return text
    cuts = range(len(text) + 1)
    end = text[bisect_left(cuts, -((most - 1) // 3), key=lambda cut: -columns(text[cut:])) :]
    room = most - 1 - columns(end)
    return f"{text[: bisect_right(cuts, room, key=lambda cut: columns(text[:cut])) - 1]}…{end}"
