"""Names in scripts that the first font does not have: another font's glyphs, or one warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib.font_manager import fontManager, get_font

from murp.plots import fonts
from murp.plots.labels import write_names
from murp.plots.style import new_figure, save, tidy


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with DejaVu Sans and no other font."""
    first = tuple(entry for entry in fonts._fonts() if entry.name == fonts.FIRST)
    monkeypatch.setattr(fonts, "_fonts", lambda: first)
    fonts.family_of.cache_clear()
    yield
    fonts.family_of.cache_clear()


def picture(title: str, names: list[str], path: Path) -> list[str]:
    """Draw names below a title, save the picture, and return the names as they stand there."""
    figure = new_figure(4, 4)
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    tidy(axes, title=title)
    texts = write_names(axes, names, [[0.4, 0.1 + 0.8 * i / len(names)] for i in range(len(names))], limit=9)
    save(figure, path)
    return [text.get_text() for text in texts]


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_what_no_font_has_is_told_once(ending: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="^2 names use characters that no installed font has") as told:
        written = picture("around 東京", ["Zürich", "東京 (Tokyo)", "Москва"], tmp_path / f"a.{ending}")
    assert len(told) == 1
    assert written == ["Zürich", "�� (Tokyo)", "Москва"]


@pytest.mark.usefixtures("alone")
def test_what_the_first_font_has_needs_no_other(tmp_path: Path) -> None:
    names = ["Ἀθηνᾶ", "القاهرة", "naïve −½ √b", "a\u200db"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture("plain", names, tmp_path / "a.png") == names


def test_another_font_is_taken_where_it_has_the_character(tmp_path: Path) -> None:
    """Of those that come with matplotlib, so that the machine need have none."""
    first, other = (get_font(fontManager.findfont(name)).get_charmap() for name in (fonts.FIRST, "STIXGeneral"))
    character = next(chr(code) for code in sorted(other) if code > 0x2000 and code not in first and chr(code).isalpha())
    assert fonts.family_of("a") == fonts.FIRST
    assert fonts.family_of(character) not in (None, fonts.FIRST)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture("found", [f"see {character}"], tmp_path / "a.png") == [f"see {character}"]
