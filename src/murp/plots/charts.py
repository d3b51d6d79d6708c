"""Charts of measured values: plain arrays in, a matplotlib figure out.

Write one with :func:`murp.plots.style.save`. Models have the same colours in all charts. The paper's values are hollow
and dotted, ours are filled and solid.
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
    decimal,
    figure_text,
    legend,
    legend_above,
    new_figure,
    plain_decimals,
    tidy,
)
from murp.widths import shortened

Spread = tuple[ArrayLike, ArrayLike]  # means and standard deviations, one for every x
_PANELS = {"valid": "metric", "train": "metric", "loss": "loss"}  # of a curve's parts
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
    legend_above(axes, entries, ncols=2, inches=COLUMN)
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
    perhaps ``loss``. NaN where nothing was measured, as between two validations; what was never measured has no axes.
    """
    drawn = {name: _measured(curve) for name, curve in curves.items()}
    labels = {"metric": of, "loss": "training loss"}
    shown = [kind for kind in labels if any(_PANELS[part] == kind for parts in drawn.values() for part in parts)]
    figure = new_figure(COLUMN, 3.6 if len(shown) == 2 else 2.6)
    panels = dict(zip(shown, np.atleast_1d(figure.subplots(max(len(shown), 1), sharex=True)), strict=False))
    looks = appearances(list(curves))
    for name, parts in drawn.items():
        for part, (epoch, values) in parts.items():
            axes = panels[_PANELS[part]]
            style = {"color": looks[name][0], "linewidth": 1.3, "linestyle": "--" if part == "train" else "-"}
            style |= {"marker": "o", "markersize": 4} if len(epoch) == 1 else {}  # a line of one point is not seen
            # A legend for the loss only where the metric's does not name the model.
            label = f"{name}, {part}" if part != "loss" else name if list(parts) == ["loss"] else None
            axes.plot(epoch, values, label=label, **style)
    for kind, axes in panels.items():
        if kind == "loss":
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
        plain_decimals(axes.yaxis)
        tidy(axes, x="epoch" if kind == shown[-1] else "", y=labels[kind])
        if entries := axes.get_legend_handles_labels()[0]:
            legend_above(axes, entries, ncols=2, inches=COLUMN)
    return figure


def _measured(curve: Mapping[str, ArrayLike]) -> dict[str, tuple[Any, Any]]:
    """The parts of a curve that have any value, each as epochs and values; the order of the legend."""
    found = {}
    for part in _PANELS:
        if part in curve:
            epoch, values = np.asarray(curve["epoch"], float), np.asarray(curve[part], float)
            there = np.isfinite(values)
            if there.any():
                found[part] = epoch[there], values[there]
    return found


def norms_against_biases(models: Mapping[str, tuple[ArrayLike, ArrayLike]], *, of: str = "bias") -> Figure:
    """Norm of every entity's embedding against its bias, axes for each model (figure 4).

    ``models``: name → (norms (N,), biases (N,)). ``of``: which bias that is. The points are pixels in
    vector files too: 40,000 paths would be a file nobody can open.
    """
    count = len(models)
    figure = new_figure(COLUMN if count == 1 else PAGE, 2.8)
    looks = appearances(list(models))
    for axes, (name, (norms, biases)) in zip(np.atleast_1d(figure.subplots(1, count)), models.items(), strict=True):
        size = float(np.clip(8000 / max(np.size(norms), 1), 0.4, 6))
        axes.scatter(norms, biases, s=size, c=looks[name][0], alpha=0.4, linewidths=0, rasterized=True)
        axes.ticklabel_format(useOffset=False)
        tidy(axes, x="norm of the embedding", y=of, title=name)
    return figure


def relation_bars(
    names: Sequence[str],
    hits: Mapping[str, ArrayLike],
    khs: Sequence[str] | None = None,
    *,
    of: str = "hits@10",
    title: str = "",
) -> Figure:
    """A bar for every relation and model, in the order given (the picture of table 3).

    ``hits``: model → one value for each of ``names``; NaN where nothing was asked. ``khs``: the relations'
    Krackhardt scores as they are to be written beside the names.
    """
    height = 0.9 + 0.17 * len(names) * (len(hits) + 0.6)
    figure = new_figure(PAGE, height)
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
    scores = [""] * len(names) if khs is None else [f"  ({score})" for score in khs]
    axes.set_yticks(rows, [shortened(name) + score for name, score in zip(names, scores, strict=True)])
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, 1.06)
    plain_decimals(axes.xaxis)
    explained = "" if khs is None else "relation (Krackhardt score)"
    low = bool(explained) and height < 2.4  # the words would be longer than the axis
    tidy(axes, x=f"{of}; at the axis: {explained}" if low else of, grid="x")
    axes.set_title(title, fontsize=LARGE, color=INK, loc="left")
    axes.tick_params(axis="y", labelsize=NORMAL, length=0)
    axes.set_ylabel("" if low else explained, fontsize=NORMAL, color=INK)
    # The title stands to its left.
    legend_above(axes, axes.get_legend_handles_labels()[0], ncols=len(hits), inches=PAGE - 3)
    return figure


Bins = tuple[ArrayLike, ArrayLike, ArrayLike]  # mean probability, share that are facts, number of answers


def reliability(panels: Mapping[str, Mapping[str, Bins]], *, title: str = "") -> Figure:
    """Reliability diagrams: the share of facts among answers given a probability, against that probability.

    ``panels``: name → curve → its bins; a column for each panel. On the diagonal, a probability equals the share of
    facts. Below: the number of answers. The axes are logarithmic, since most answers are improbable; bins without
    answers, or without a fact among them, have no point.
    """
    figure = new_figure(COLUMN * len(panels), 4.2)
    columns = figure.subplots(2, len(panels), sharex="col", height_ratios=(3, 1), squeeze=False).T
    bars = {"markersize": 4, "linewidth": 1.3, "elinewidth": 0.8, "capsize": 2, "zorder": 3}
    for (upper, lower), (name, curves) in zip(columns, panels.items(), strict=True):
        least = 0.1
        for (label, bins), (colour, marker) in zip(curves.items(), appearances(list(curves)).values(), strict=True):
            p, share, n = (np.asarray(values, float) for values in bins)
            lower.plot(p[n > 0], n[n > 0], color=colour, marker=marker, markersize=4, linewidth=1.3)
            there = (n > 0) & (share > 0)
            p, share, n = p[there], share[there], n[there]
            # The bar is two standard errors of a share of n draws.
            error = 2 * np.sqrt(share * (1 - share) / n)
            upper.errorbar(p, share, yerr=error, color=colour, marker=marker, label=label, **bars)
            least = min([least, *p, *share])
        ends = (10 ** np.floor(np.log10(least)), 1.25)
        upper.plot(ends, ends, color=GREY, linewidth=1, zorder=1)
        upper.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        lower.set(yscale="log")
        lower.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        lower.yaxis.set_minor_locator(NullLocator())
        for axis in (upper.yaxis, lower.xaxis):
            axis.set_major_formatter(lambda value, _: decimal(value, 7))
        tidy(upper, y="share of facts", title=name)
        tidy(lower, x="predicted probability", y="answers")
        legend(upper, loc="upper left")  # above the diagonal: scores promise too much among many candidates
    if title:
        figure.suptitle(title, fontsize=LARGE, color=INK)
    return figure
