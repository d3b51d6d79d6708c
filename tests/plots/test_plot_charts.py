"""Charts show the figures they are given, and say whose they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boxes import assert_inside
from matplotlib.figure import Figure

from murp.plots import (
    convergence,
    difference_by_share,
    mrr_by_dimension,
    norms_against_biases,
    relation_bars,
    reliability,
    save,
)

DIMS = [5, 10, 15, 20, 40, 100, 200]
MRR = {"MuRP": np.linspace(0.3, 0.48, 7), "MuRE": np.linspace(0.2, 0.47, 7)}


def lines(figure: Figure, axes: int = 0) -> dict[str, Any]:
    """The labelled lines of a chart."""
    return {
        line.get_label(): line
        for line in figure.axes[axes].lines
        if not str(line.get_label()).startswith(("_", "child"))
    }


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]  # type: ignore[union-attr]


def test_mrr_by_dimension_is_log_log_with_every_value_its_spread_and_the_papers() -> None:
    series = {name: (mean, np.full(7, 0.01)) for name, mean in MRR.items()}
    figure = mrr_by_dimension(DIMS, series, paper={"MuRP": {40: 0.477, 200: 0.481}})
    axes = figure.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    drawn = lines(figure)
    for name, mean in MRR.items():
        assert drawn[name].get_xdata().tolist() == DIMS
        assert drawn[name].get_ydata() == pytest.approx(mean)
    assert list(drawn["MuRP, paper"].get_ydata()) == [0.477, 0.481]
    assert drawn["MuRP, paper"].get_color() == drawn["MuRP"].get_color() != drawn["MuRE"].get_color()
    assert legend_texts(figure) == ["MuRP", "MuRE", "MuRP, paper"]
    figure.canvas.draw()
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [str(d) for d in DIMS]
    assert all(tick.get_text().startswith(".") for tick in axes.get_yticklabels())
    bars = [np.array(part) for part in axes.collections[0].get_segments()]  # type: ignore[attr-defined]
    assert [bar[1, 1] - bar[0, 1] for bar in bars] == pytest.approx([0.02] * 7)


def test_difference_by_share_runs_from_the_most_hierarchical_on_and_marks_zero() -> None:
    shares = [100, 75, 50, 25]
    figure = difference_by_share(shares, {"d=40": ([0.02, 0.01, 0.01, 0.0], [0] * 4), "d=200": ([0.01] * 4, [0] * 4)})
    axes = figure.axes[0]
    left, right = axes.get_xlim()
    assert left > right
    assert lines(figure)["d=40"].get_ydata().tolist() == [0.02, 0.01, 0.01, 0.0]
    assert any(list(line.get_ydata()) == [0, 0] for line in axes.lines)
    assert legend_texts(figure) == ["d=40", "d=200"]


def test_convergence_has_valid_solid_train_dashed_and_skips_what_was_not_measured() -> None:
    nan = float("nan")
    curve = {"epoch": [1, 2, 3], "train": [0.1, 0.2, 0.3], "valid": [nan, 0.1, nan]}
    figure = convergence({"MuRP": curve, "MuRE": {"epoch": [1, 2], "valid": [0.1, 0.2]}})
    drawn = lines(figure)
    assert {name: line.get_linestyle() for name, line in drawn.items()} == {
        "MuRP, valid": "-",
        "MuRP, train": "--",
        "MuRE, valid": "-",
    }
    assert drawn["MuRP, valid"].get_xdata().tolist() == [2]
    assert drawn["MuRP, valid"].get_color() == drawn["MuRP, train"].get_color()
    assert len(figure.axes) == 1


def test_a_loss_has_axes_of_its_own_and_may_stand_alone() -> None:
    nan = float("nan")
    figure = convergence({"MuRP": {"epoch": [1, 2, 3], "loss": [0.5, 0.1, 0.1], "valid": [nan, nan, nan]}})
    (axes,) = figure.axes
    assert axes.get_yscale() == "log"
    assert list(axes.lines[0].get_ydata()) == [0.5, 0.1, 0.1]  # type: ignore[arg-type]
    assert legend_texts(figure) == ["MuRP"]
    figure.canvas.draw()
    assert {"1", "2", "3"} <= {tick.get_text() for tick in axes.get_xticklabels()} <= {"0", "1", "2", "3", "4"}
    both = convergence({"MuRP": {"epoch": [1], "loss": [0.5], "valid": [0.2]}, "MuRE": {"epoch": [1], "loss": [0.4]}})
    upper, lower = both.axes
    assert [line.get_marker() for line in (*upper.lines, *lower.lines)] == ["o", "o", "o"]  # a point is seen
    assert [axes.get_legend().texts[0].get_text() for axes in both.axes] == ["MuRP, valid", "MuRE"]  # type: ignore[union-attr]


def test_the_legend_lies_on_no_curve_and_within_the_figure() -> None:
    falling = {"epoch": list(range(1, 100)), "valid": [1 / i for i in range(1, 100)]}
    for name in ("MuRP d=5", f"MuRP d=5, {'a/long/path' * 20}"):
        figure = convergence({name: falling, f"{name}2": falling})
        assert_inside(figure)
        (axes,) = figure.axes
        bottom = axes.get_legend().get_window_extent().y0  # type: ignore[union-attr]
        assert bottom >= axes.get_window_extent().y1


def test_forty_thousand_points_are_pixels_inside_vector_files(tmp_path: Path) -> None:
    norms = np.random.default_rng(0).normal(size=(2, 40_000))
    figure = norms_against_biases({"MuRP": (norms[0], norms[1]), "MuRE": (norms[1], norms[0])})
    assert [len(axes.collections[0].get_offsets()) for axes in figure.axes] == [40_000, 40_000]  # type: ignore[arg-type]
    for ending in ("svg", "pdf"):
        save(figure, tmp_path / f"a.{ending}")
        assert (tmp_path / f"a.{ending}").stat().st_size < 2**20
    text = (tmp_path / "a.svg").read_text()
    assert text.count("<image") == 2
    assert text.count("<use") < 1000


def test_relation_bars_have_their_lengths_their_figures_and_the_scores_by_the_names() -> None:
    hits = {"MuRP": [0.705, 0.228, 1.0], "MuRE": [0.634, 0.161, float("nan")]}
    figure = relation_bars(["also_see", "hypernym", "similar_to"], hits, khs=["0.24", "0.999", "0.00"])
    axes = figure.axes[0]
    lengths = [bar.get_width() for bar in axes.patches]  # type: ignore[attr-defined]
    assert lengths == [0.705, 0.228, 1.0, 0.634, 0.161, 0.0]
    assert [text.get_text() for text in axes.texts] == [".705", ".228", "1.000", ".634", ".161", "–"]
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["also_see  (0.24)", "hypernym  (0.999)", "similar_to  (0.00)"]
    tops = axes.get_ylim()
    assert tops[0] > tops[1]  # the first on top


@pytest.mark.parametrize("count", [1, 2, 4, 5, 30])
def test_few_bars_or_many_nothing_is_cut_off(count: int) -> None:
    names = [f"{'a_long_name_' * 8}{i}" for i in range(count)]
    figure = relation_bars(names, {"MuRP d=5": [0.5] * count}, khs=["0.50"] * count, title="tree, test")
    assert_inside(figure)
    (axes,) = figure.axes
    explained = "relation (Krackhardt score)"
    assert (axes.get_ylabel() == explained) != (explained in axes.get_xlabel())
    assert len({tick.get_text() for tick in axes.get_yticklabels()}) == count


def test_biases_that_hardly_differ_are_written_in_full() -> None:
    figure = norms_against_biases({"MuRP": ([0.1, 0.2], [-11.029291, -11.029275])}, of="head bias")
    (axes,) = figure.axes
    figure.canvas.draw()
    assert axes.yaxis.get_offset_text().get_text() == ""
    assert axes.get_ylabel() == "head bias"


def test_a_reliability_diagram_leaves_empty_bins_out_and_has_the_diagonal() -> None:
    bins = ([0.004, 0.1, np.nan, 0.9], [0.0, 0.2, np.nan, 1.0], [200, 100, 0, 50])
    figure = reliability({"shown": {"platt": bins}, "all": {"platt": bins}})
    assert [axes.get_title() for axes in figure.axes] == ["shown", "all", "", ""]
    for upper, lower in zip(figure.axes[:2], figure.axes[2:], strict=True):
        drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in upper.lines]
        assert ([0.1, 0.9], [0.2, 1.0]) in drawn  # no point where no fact is
        assert ([0.1, 1.25], [0.1, 1.25]) in drawn
        assert list(lower.lines[0].get_ydata()) == [200, 100, 50]
