"""The house style: what is written, that it is the same every time, and that nothing else is touched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest
from boxes import assert_inside
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from murp.errors import MurpError
from murp.plots.style import appearances, decimal, figure_text, light, new_figure, save, tidy

STARTS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


def example(title: str = "a title") -> Figure:
    figure = new_figure(3.0, 2.0)
    axes = figure.add_subplot()
    axes.plot([0, 1, 2], [3, 1, 2])
    axes.scatter(range(50), range(50), s=2, rasterized=True)
    tidy(axes, x="x", y="y", title=title)
    return figure


@pytest.mark.parametrize("ending", STARTS)
def test_the_same_figure_gives_the_same_bytes_without_a_date(ending: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(example(), tmp_path / f"{name}{ending}")
    written = (tmp_path / f"a{ending}").read_bytes()
    assert written.startswith(STARTS[ending])
    assert written == (tmp_path / f"b{ending}").read_bytes()
    for told in (b"Date", b"Creat", b"matplotlib.org"):
        assert told not in written


def test_saving_replaces_a_picture_and_leaves_matplotlib_as_it_was(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    for title in ("first", "second"):
        save(example(title), tmp_path / "a.svg")
    assert dict(matplotlib.rcParams) == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.svg"]


@pytest.mark.parametrize("ending", STARTS)
@pytest.mark.parametrize("bar", [False, True])
def test_a_figure_is_laid_out_for_a_file_as_it_is_for_the_screen(ending: str, bar: bool, tmp_path: Path) -> None:
    def coloured() -> Figure:
        figure = example("a title " * 9)
        if bar:
            axes = figure.axes[0]
            axes.set_aspect("equal")
            figure.colorbar(axes.collections[0], ax=axes, location="bottom", shrink=0.4)
        return figure

    shown, saved = coloured(), coloured()
    shown.canvas.draw()
    drawn: list[list[float]] = []
    saved.add_artist(Told(drawn))
    save(saved, tmp_path / f"a{ending}")
    assert len(drawn) == 1  # once, with nothing drawn unseen before
    assert drawn[0] == pytest.approx([float(x) for axes in shown.axes for x in axes.get_position().extents], abs=1e-9)
    assert saved.get_layout_engine() is not None


class Told(Artist):
    """An artist that writes down where the axes are when it is drawn."""

    def __init__(self, places: list[list[float]]) -> None:
        super().__init__()
        self.places = places
        self.set_zorder(99)

    def draw(self, renderer: Any) -> None:
        figure: Any = self.get_figure()
        self.places.append([float(x) for axes in figure.axes for x in axes.get_position().extents])


def test_a_figure_that_is_not_laid_out_is_saved_as_it_is(tmp_path: Path) -> None:
    figure = Figure()
    save(figure, tmp_path / "a.png")
    assert figure.get_layout_engine() is None


def test_threads_draw_side_by_side(tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.svg" for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda path: save(example(), path), paths))
    assert len({path.read_bytes() for path in paths}) == 1


def test_what_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(MurpError, match=r"not '\.gif'"):
        save(example(), tmp_path / "a.gif")
    with pytest.raises(MurpError, match="name without ending"):
        save(example(), tmp_path / "a")
    with pytest.raises(MurpError, match="could not write"):
        save(example(), tmp_path / "nowhere" / "a.png")
    assert list(tmp_path.iterdir()) == []


def test_a_dollar_is_a_dollar(tmp_path: Path) -> None:
    save(example(r"$\broken_{$"), tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize("title", ["word " * 60, "x" * 200])
@pytest.mark.parametrize("panels", [1, 2])
def test_a_long_title_runs_on_over_lines_and_a_short_one_stays_as_it_is(title: str, panels: int) -> None:
    figure = new_figure(5.0, 4.0)
    for axes in np.atleast_1d(figure.subplots(1, panels)):
        tidy(axes, title=title)
        assert "".join(axes.get_title().split()) == "".join(title.split())
    assert_inside(figure)
    assert example("a  title").axes[0].get_title() == "a  title"


@pytest.mark.parametrize(
    ("value", "printed", "short"),
    [
        (0.477, ".477", ".477"),
        (0.47, ".470", ".47"),
        (-0.02, "−.020", "−.02"),
        (1.0, "1.000", "1"),
        (0.0, ".000", "0"),
        (-0.0001, ".000", "0"),
        (20.0, "20.000", "20"),
        (float("nan"), "–", "–"),
    ],
)
def test_figures_as_the_literature_prints_them(value: float, printed: str, short: str) -> None:
    assert figure_text(value) == printed
    assert decimal(value) == short


@given(st.lists(st.sampled_from(["MuRP", "MuRE", "MuRP d=2", "MuRE d=2", "d=40", "d=200", "other"]), unique=True))
def test_series_are_told_apart_and_models_keep_their_colours(names: list[str]) -> None:
    chosen = appearances(names)
    assert set(chosen) == set(names)
    assert len(set(chosen.values())) == len(names)
    alone = appearances(["MuRP"])["MuRP"]
    first = next((name for name in names if name.startswith("MuRP")), None)
    assert first is None or chosen[first] == alone


def test_light_colours() -> None:
    assert light("#000000", 1.0) == "#000000"
    assert light("#000000", 0.0) == "#ffffff"
