"""The picture of a search for settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from murp.plots.style import BLUE, GREY, PAGE, VERMILION, legend, new_figure, plain_decimals, tidy
from murp.widths import shortened

Curve = Mapping[int, float]  # epoch → MRR on valid


def tuning(curves: Sequence[Curve], best: int | None, importance: Mapping[str, float]) -> Figure:
    """The curve of every trial, the best so far, and how much each setting matters.

    ``curves``: one a trial, in their order. ``best``: which of them is the best. ``importance``: shares by setting.
    """
    figure = new_figure(PAGE, 2.5)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
    for number, curve in enumerate(curves):
        chosen = number == best
        left.plot(
            list(curve),
            list(curve.values()),
            color=VERMILION if chosen else GREY,
            linewidth=1.6 if chosen else 0.6,
            zorder=3 if chosen else 2,
            marker="o" if len(curve) < 2 else "",
            markersize=2,
            label="the best trial" if chosen else None,
        )
    tidy(left, x="epoch", y="MRR on valid")
    if best is not None:
        legend(left, loc="lower right")
    reached = [max(curve.values(), default=0.0) for curve in curves]
    middle.plot(range(len(reached)), reached, ".", color=GREY, markersize=3)
    so_far = [max(reached[: number + 1]) for number in range(len(reached))]
    middle.step(range(len(so_far)), so_far, where="post", color=BLUE, linewidth=1.4, label="best so far")
    middle.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    tidy(middle, x="trial", y="MRR on valid")
    if reached:
        legend(middle, loc="lower right")
    for axes in (left, middle):
        plain_decimals(axes.yaxis)
    names = sorted(importance, key=lambda name: importance[name])
    right.barh([shortened(name, 20) for name in names], [importance[name] for name in names], color=BLUE, height=0.6)
    tidy(right, x="importance", grid="x")
    if not names:
        right.text(0.5, 0.5, "too few trials", ha="center", va="center", transform=right.transAxes)
        right.set_yticks([])
    return figure
