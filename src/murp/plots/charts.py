"""Charts of measured figures: plain arrays in, a matplotlib figure out.

Write one with :func:`murp.plots.style.save`. Models keep their colours throughout; what a chart draws hollow and
dotted is what the paper printed, ours is filled and solid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike

from murp.plots.style import (
    COLUMN,
    GREY,
    INK,
    LARGE,
    NORMAL,
    PAGE,
    SMALL,
    appearances,
    figure_text,
    legend,
    new_figure,
    plain_decimals,
    tidy,
)

Spread = tuple[ArrayLike, ArrayLike]  # means and standard deviations, one for every x
ABOVE = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}  # a legend that covers no data
Printed = Mapping[str, Mapping[float, float]]  # series → x → what the paper says


def mrr_by_dimension(dims: Sequence[int], series: Mapping[str, Spread], paper: Printed | None = None) -> Figure:
    """MRR against the dimension on two logarithmic axes (the paper's figure 3a).

    ``series``: model → (means, standard deviations), one for each of ``dims``. ``paper``: model → dimension → MRR.
    """
    figure = new_figure(COLUMN, 2.6)
    axes = figure.add_subplot()
    axes.set(xscale="log", yscale="log")
    entries = _lines_with_spread(axes, dims, series, paper or {})
    axes.xaxis.set_major_locator(FixedLocator(list(dims)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    steps = MaxNLocator(7, steps=[1, 2, 5, 10]).tick_values(low, high)
    axes.yaxis.set_major_locator(FixedLocator([step for step in steps if low <= step <= high]))
    axes.yaxis.set_minor_locator(NullLocator())
    plain_decimals(axes.yaxis)
    tidy(axes, x="dimension d", y="MRR")
    legend(axes, handles=entries, loc="lower right")
    return figure


def difference_by_share(
    shares: Sequence[float], series: Mapping[str, Spread], paper: Printed | None = None, *, of: str = "MRR"
) -> Figure:
    """How far MuRP is ahead of MuRE against the share of hierarchical relations in percent (figure 6).

    ``series``: name (``d=40``) → (means, standard deviations) of the difference, one for each of ``shares``.
    ``paper``: name → share → difference.
    """
    figure = new_figure(COLUMN, 2.6)
    axes = figure.add_subplot()
    axes.axhline(0, color=INK, linewidth=0.8)
    entries = _lines_with_spread(axes, shares, series, paper or {})
    axes.set_xticks(list(shares))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")
    axes.invert_xaxis()  # as in the paper: from the most hierarchical on
    plain_decimals(axes.yaxis)
    tidy(axes, x="hierarchical relations", y=f"{of}, MuRP − MuRE")
    legend(axes, handles=entries, **ABOVE, ncols=2)
    return figure


def _lines_with_spread(axes: Any, x: Sequence[float], series: Mapping[str, Spread], paper: Printed) -> list[Any]:
    """Draw ours and the paper's, and return the legend's entries in that order."""
    looks = appearances([*series, *(name for name in paper if name not in series)])
    entries = []
    for name, (mean, deviation) in series.items():
        colour, marker = looks[name]
        bars = {"capsize": 2, "elinewidth": 0.8, "linewidth": 1.3, "markersize": 4}
        line = axes.errorbar(x, mean, yerr=deviation, color=colour, marker=marker, zorder=3, **bars).lines[0]
        line.set_label(name)
        entries.append(line)
    for name, values in paper.items():
        colour, marker = looks[name]
        hollow = {"markerfacecolor": "none", "markersize": 6, "linewidth": 0.8, "linestyle": ":", "zorder": 4}
        label = f"{name}, paper"
        entries += axes.plot(list(values), list(values.values()), color=colour, marker=marker, label=label, **hollow)
    return entries


def convergence(curves: Mapping[str, Mapping[str, ArrayLike]], *, of: str = "MRR") -> Figure:
    """A metric by epoch (figure 3b): valid solid, train dashed; where there is a loss, it has axes of its own below.

    ``curves``: model → a mapping with ``epoch`` and any of ``train`` and ``valid``, one value for each epoch, and
    perhaps ``loss``. NaN where nothing was measured, as between two validations.
    """
    with_loss = any("loss" in curve for curve in curves.values())
    figure = new_figure(COLUMN, 3.6 if with_loss else 2.6)
    upper, *lower = np.atleast_1d(figure.subplots(1 + with_loss, sharex=True))
    looks = appearances(list(curves))
    for name, curve in curves.items():
        for part, dash in (("valid", "-"), ("train", "--"), ("loss", "-")):
            if part in curve:
                epoch, values = np.asarray(curve["epoch"], float), np.asarray(curve[part], float)
                there = np.isfinite(values)
                axes = lower[0] if part == "loss" else upper
                label = None if part == "loss" else f"{name}, {part}"
                axes.plot(epoch[there], values[there], dash, color=looks[name][0], linewidth=1.3, label=label)
    plain_decimals(upper.yaxis)
    tidy(upper, x="" if lower else "epoch", y=of)
    if upper.lines:
        legend(upper, loc="lower right")
    for axes in lower:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
        plain_decimals(axes.yaxis)
        tidy(axes, x="epoch", y="training loss")
    return figure


def norms_against_biases(models: Mapping[str, tuple[ArrayLike, ArrayLike]]) -> Figure:
    """Norm of every entity's embedding against its bias, axes for each model (figure 4).

    ``models``: name → (norms (N,), biases (N,)). The points are pixels in vector files too: 40,000 paths would be
    a file nobody can open.
    """
    count = len(models)
    figure = new_figure(COLUMN if count == 1 else PAGE, 2.8)
    looks = appearances(list(models))
    for axes, (name, (norms, biases)) in zip(np.atleast_1d(figure.subplots(1, count)), models.items(), strict=True):
        size = float(np.clip(8000 / max(np.size(norms), 1), 0.4, 6))
        axes.scatter(norms, biases, s=size, c=looks[name][0], alpha=0.4, linewidths=0, rasterized=True)
        tidy(axes, x="norm of the embedding", y="bias", title=name)
    return figure


def relation_bars(
    names: Sequence[str],
    hits: Mapping[str, ArrayLike],
    khs: ArrayLike | None = None,
    *,
    of: str = "hits@10",
    title: str = "",
) -> Figure:
    """A bar for every relation and model, in the order given (the picture of table 3).

    ``hits``: model → one value for each of ``names``; NaN where nothing was asked. ``khs``: the relations'
    Krackhardt scores, written beside the names.
    """
    figure = new_figure(PAGE, 0.9 + 0.17 * len(names) * (len(hits) + 0.6))
    axes = figure.add_subplot()
    looks = appearances(list(hits))
    thickness = 0.8 / max(len(hits), 1)
    rows = np.arange(len(names))
    for i, (name, values) in enumerate(hits.items()):
        lengths, middle = np.asarray(values, float), rows + (i - (len(hits) - 1) / 2) * thickness
        axes.barh(middle, np.nan_to_num(lengths), height=thickness * 0.9, color=looks[name][0], label=name)
        for at, value in zip(middle, lengths, strict=True):
            place: dict[str, Any] = {"xytext": (2, 0), "textcoords": "offset points", "va": "center_baseline"}
            axes.annotate(figure_text(value), (np.nan_to_num(value), at), fontsize=SMALL, color=INK, **place)
    scores = [""] * len(names) if khs is None else [f"  ({score:.2f})" for score in np.asarray(khs, float)]
    axes.set_yticks(rows, [name + score for name, score in zip(names, scores, strict=True)])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1.06)
    plain_decimals(axes.xaxis)
    tidy(axes, x=of, grid="x")
    axes.set_title(title, fontsize=LARGE, color=INK, loc="left")
    axes.tick_params(axis="y", labelsize=NORMAL, length=0)
    if khs is not None:
        axes.set_ylabel("relation (Krackhardt score)", fontsize=NORMAL, color=INK)
    legend(axes, **ABOVE, ncols=len(hits))
    return figure


def reliability(curves: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]], *, title: str = "") -> Figure:
    """A reliability diagram: the share of facts among triples given a probability, against that probability.

    ``curves``: name → (mean probability, share that are facts, number of triples), a value for each bin; bins
    without triples are left out. On the diagonal a probability means what it says. Below: where the triples are.
    """
    figure = new_figure(COLUMN, 4.0)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    upper.plot([0, 1], [0, 1], color=GREY, linewidth=1, zorder=1)
    looks = appearances(list(curves))
    bars = {"markersize": 4, "linewidth": 1.3, "elinewidth": 0.8, "capsize": 2, "zorder": 3}
    for name, bins in curves.items():
        p, share, n = (np.asarray(values, float) for values in bins)
        p, share, n = (values[n > 0] for values in (p, share, n))
        colour, marker = looks[name]
        # The bar is two standard errors of a share of n draws.
        error = 2 * np.sqrt(share * (1 - share) / n)
        upper.errorbar(p, share, yerr=error, color=colour, marker=marker, label=name, **bars)
        lower.plot(p, n, color=colour, marker=marker, markersize=4, linewidth=1.3)
    upper.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    lower.set_yscale("log")
    lower.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    lower.yaxis.set_minor_locator(NullLocator())
    for axis in (upper.xaxis, upper.yaxis, lower.xaxis):
        plain_decimals(axis)
    tidy(upper, y="share of facts", title=title)
    tidy(lower, x="predicted probability", y="triples")
    legend(upper, loc="lower right")  # below the diagonal: scores that promise too little lie above it
    return figure
