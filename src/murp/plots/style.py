"""The common style: one palette, one scale of type, one way to make a figure and one to write it.

Figures are made without ``pyplot`` and without touching matplotlib's global settings, so that threads may draw at
the same time; :func:`save` writes the same bytes for the same figure, dates and versions left out.
"""

from __future__ import annotations

import io
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

from murp.errors import MurpError
from murp.files import replacing
from murp.plots.fonts import set_fonts, tell_missing
from murp.widths import columns, shortened

# Okabe and Ito's palette: told apart by readers of every kind of colour vision.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, INK, FAINT, PAPER = "#B8C4CE", "#222222", "#E3E6E8", "#FBFBF9"

COLUMN, PAGE = 3.5, 7.0  # widths in inches: one column of a page, and the page
SMALL, NORMAL, LARGE = 6.5, 7.5, 8.5  # type in points: ticks and labels of points; axes and legends; titles
WIDE = 0.62  # the width of a letter in units of its size: few texts of some length are wider on average
HANDLE = 5  # letters' room for the sign before a name in a legend
DPI = 200

# A model keeps its colour and its marker in every figure; other series take the rest in turn.
_MODELS = {"MuRP": (BLUE, "o"), "MuRE": (VERMILION, "s")}
_OTHERS = ((GREEN, "^"), (PURPLE, "D"), (ORANGE, "v"), (SKY, "P"), (BLACK, "X"))

# By ending; None leaves out what matplotlib would write of itself and of the time.
_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_PACKING = 3  # zlib's level: half the time of 6, which makes pictures of many points no smaller
_SETTINGS: Any = {
    "svg.hashsalt": "murp",
    "pdf.fonttype": 42,
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
}
# matplotlib has these settings for the whole process only.
_saving = threading.Lock()


def appearances(names: list[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker for every series: MuRP's and MuRE's own where a name begins with theirs and is the only one."""
    chosen: dict[str, tuple[str, str]] = {}
    for model, appearance in _MODELS.items():
        of_model = [name for name in names if name.startswith(model)]
        chosen.update(dict.fromkeys(of_model[:1], appearance))
    rest = [name for name in names if name not in chosen]
    chosen.update({name: _OTHERS[i % len(_OTHERS)] for i, name in enumerate(rest)})
    return chosen


def light(colour: str, share: float = 0.3) -> str:
    """The colour mixed with white: ``share`` of it is left."""
    red, green, blue = (1 - share * (1 - part) for part in to_rgb(colour))
    return str(to_hex((red, green, blue)))


class Picture(Figure):
    """A figure that a notebook shows as it would be saved, without ``pyplot``."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        picture = io.BytesIO()
        _write(self, picture, ".png")
        width, height = self.get_size_inches()
        # Twice as many dots as a screen shows on its inch: sharp on every screen.
        return picture.getvalue(), {"width": round(width * DPI / 2), "height": round(height * DPI / 2)}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, its parts laid out so that nothing is cut off.

    But for what is wider than the figure: titles run on over lines (:func:`tidy`), names are to be shortened
    (:func:`murp.widths.shortened`).
    """
    figure = Picture(figsize=(width, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Any, *, x: str = "", y: str = "", title: str = "", grid: str = "both") -> None:
    """Axes in the house style: two thin spines, faint grid, type from the scale. ``grid``: x, y, both or none."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set(linewidth=0.6, color=INK)
    for which, size in (("major", 2.5), ("minor", 1.5)):
        axes.tick_params(which=which, labelsize=SMALL, width=0.6, length=size, color=INK, labelcolor=INK)
    axes.set_axisbelow(True)
    if grid != "none":
        axes.grid(axis=grid, color=FAINT, linewidth=0.6)
    axes.set_xlabel(x, fontsize=NORMAL, color=INK)
    axes.set_ylabel(y, fontsize=NORMAL, color=INK)
    if title:
        axes.set_title(wrapped(axes, title, LARGE), fontsize=LARGE, color=INK)


def wrapped(axes: Any, text: str, size: float) -> str:
    """The text in as many lines as it takes at ``size`` for the axes' part of the figure to be wide enough for each."""
    inches = axes.figure.get_size_inches()[0] / axes.get_subplotspec().get_gridspec().ncols
    fit = int((inches - 0.4) * 72 / (WIDE * size))  # less what stands at the side of the axes
    if columns(text) <= fit:
        return text
    return "\n".join(textwrap.wrap(text, fit * len(text) // columns(text)))


def plain_decimals(axis: Any) -> None:
    """Tick labels as the literature prints a metric: .05, not 5 × 10⁻²."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: decimal(value)))


def decimal(value: float, digits: int = 3) -> str:
    """.47 for 0.470, −.02 for -0.02, 1 for 1: neither leading nor trailing zeros."""
    return figure_text(value, digits).rstrip("0").rstrip(".") or "0"


def figure_text(value: float, digits: int = 3) -> str:
    """A metric as the literature prints it: .470, −.020, 1.000; a dash for NaN."""
    if value != value:
        return "–"
    text = f"{abs(value):.{digits}f}"
    return ("−" if value < 0 and float(text) else "") + (text[1:] if text.startswith("0.") else text)


def legend(axes: Any, **options: Any) -> Any:
    """The legend in the house style, without a frame."""
    return axes.legend(**{"frameon": False, "fontsize": NORMAL, "labelcolor": INK, "handlelength": 1.6, **options})


def legend_above(axes: Any, entries: Sequence[Any], *, ncols: int, inches: float) -> None:
    """A legend that covers no data, in ``ncols`` columns, or one where so many ``inches`` are too few for these."""
    fit = int(inches * 72 / (WIDE * NORMAL))
    names = [str(entry.get_label()) for entry in entries]
    if ncols * (HANDLE + max(map(columns, names))) > fit:
        ncols = 1
    labels = [shortened(name, fit - HANDLE) for name in names]
    place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "borderaxespad": 0.2}
    legend(axes, handles=entries, labels=labels, ncols=ncols, **place)


def picture_path(path: Path) -> Path:
    """The path itself, if its ending says a format we write: to be asked before the work of drawing begins."""
    if path.suffix not in _METADATA:
        raise MurpError(f"{path}: pictures are .png, .svg or .pdf, not {path.suffix or 'a name without ending'!r}.")
    return path


def save(figure: Figure, path: Path) -> None:
    """Write the figure to ``path``, PNG, SVG or PDF by its ending, whole or not at all; what stood there is replaced.

    The same figure gives the same bytes. Text is text: a ``$`` in a name is a dollar sign, not mathematics.
    """
    picture_path(path)
    try:
        with replacing(path) as part:
            _write(figure, part, path.suffix)
    except OSError as error:
        raise MurpError(f"could not write {path}: {error.strerror}.") from error


def _write(figure: Figure, target: Path | BinaryIO, ending: str) -> None:
    literal(figure)
    tell_missing(figure)
    options: dict[str, Any] = {"dpi": DPI, "metadata": _METADATA[ending]}
    if ending == ".png":
        options["pil_kwargs"] = {"compress_level": _PACKING}
    with _saving, matplotlib.rc_context(_SETTINGS), _settled(figure):
        figure.savefig(target, format=ending[1:], **options)


@contextmanager
def _settled(figure: Figure) -> Iterator[None]:
    """The figure laid out, and without its layout engine: matplotlib would draw it twice to lay it out once more.

    It is laid out at :data:`DPI` for every format, as when the names were placed.
    """
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)  # by matplotlib's settings, which say none here; "none" is an engine
    try:
        yield
    finally:
        figure.set_layout_engine(engine)


def literal(figure: Figure) -> None:
    """No text of the figure is read as a formula, and each has fonts for its characters."""
    for text in figure.findobj(Text):
        set_fonts(text)
