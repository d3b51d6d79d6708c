"""Names in every script: a font for each character, as far as the machine has one."""

from __future__ import annotations

import unicodedata
import warnings
from functools import cache

from matplotlib.figure import Figure
from matplotlib.font_manager import FontEntry, fontManager, get_font
from matplotlib.text import Text

FIRST = "DejaVu Sans"  # comes with matplotlib
MISSING = "\N{REPLACEMENT CHARACTER}"


def set_fonts(text: Text) -> None:
    """Take ``text`` literally, not as a formula, and give it fonts that have its characters.

    A character that no installed font has becomes �, as matplotlib would put a box there and warn of every one.
    """
    text.set_parse_math(False)
    written = text.get_text()
    if written.isascii():
        return
    homes = {character: family_of(character) for character in set(written)}
    text.set_fontfamily(list(dict.fromkeys([FIRST, *(home for home in homes.values() if home)])))
    if None in homes.values():
        text.set_text("".join(MISSING if homes[character] is None else character for character in written))


def tell_missing(figure: Figure) -> None:
    """One warning if characters are missing, however many."""
    count = sum(MISSING in text.get_text() for text in figure.findobj(Text))
    if count:
        warnings.warn(
            f"{count} {'names use' if count > 1 else 'name uses'} characters that no installed font has, drawn as "
            f"{MISSING}; install one, such as fonts-noto-cjk.",
            stacklevel=4,
        )


@cache
def family_of(character: str) -> str | None:
    """The first family with a glyph for the character, DejaVu Sans where it has one; None if none has.

    What is not seen (line ends, marks that only join or choose forms) needs no glyph.
    """
    if character == "\n" or unicodedata.category(character) == "Cf":
        return FIRST
    return next((entry.name for entry in _fonts() if ord(character) in _characters(entry.fname)), None)


@cache
def _fonts() -> tuple[FontEntry, ...]:
    """The upright fonts of normal weight in the order in which they are asked.

    Not those of formulas, whose characters are not where they should be, nor the one that has a box for everything.
    """
    fonts = [entry for entry in fontManager.ttflist if entry.style == "normal" and entry.weight in (400, "normal")]
    fonts = [e for e in fonts if not e.name.startswith(("cm", "STIXNonUnicode", "STIXSize", "Last Resort"))]
    return tuple(sorted(fonts, key=lambda entry: (entry.name != FIRST, "Sans" not in entry.name, entry.name)))


@cache
def _characters(path: str) -> frozenset[int]:
    return frozenset(get_font(path).get_charmap())
