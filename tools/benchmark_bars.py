"""The bars that the project set itself, and what was measured. The bars are the one thing typed by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmark_results import Result, result, table, time, times


def bars() -> list[str]:
    """What the project set itself, and what was measured."""
    rows = [row for row in (bar(*entry) for entry in BARS) if row]
    if not rows:
        return []
    note = "Medians where there are repeats; the whole runs and the frames were measured once."
    return ["## The bars", table(["what", "bar", "measured", "met"], rows), note]


def bar(what: str, name: str, figure: Callable[[Result], float], most: float, show: str) -> list[str] | None:
    """One row; where ``most`` is negative, its size is the least the figure may be."""
    stored = result(name)
    if stored is None:
        return None
    value = figure(stored["figures"])
    word, met = ("or less", value <= most) if most > 0 else ("or more", value >= -most)

    def shown(number: float) -> str:
        return time(number) if show == "s" else f"{times(number)} times"

    return [what, f"{shown(abs(most))} {word}", shown(value), "yes" if met else "no"]


def _of(*path: str) -> Callable[[Result], float]:
    def follow(figures: Any) -> float:
        for key in path:
            figures = figures[key]
        return float(figures)

    return follow


def _largest(figures: Result, key: str) -> float:
    """What the run with the most entities took."""
    by = figures["by"]
    return float(max(by.values() if isinstance(by, dict) else by, key=lambda size: size["entities"])[key])


def _slowest(figures: Result, *cases: str) -> float:
    """How default threads compare with one thread in the worst of the cases that end so."""
    found = [values["default over one"] for case, values in figures["seconds"].items() if case.endswith(cases)]
    return float(max(found))


BARS: tuple[tuple[str, str, Callable[[Result], float], float, str], ...] = (
    ("GPU, MuRP d=40, WN18RR, 500 epochs, training", "gpu_wn18rr-murp-d40", _of("training_seconds"), 8, "s"),
    ("GPU, MuRE d=40, WN18RR, 500 epochs, training", "gpu_wn18rr-mure-d40", _of("training_seconds"), 8, "s"),
    ("GPU, MuRP d=200, WN18RR, 500 epochs, training", "gpu_wn18rr-murp-d200", _of("training_seconds"), 18, "s"),
    ("GPU, MuRP d=40, FB15k-237, 500 epochs, training", "gpu_fb15k-237-murp-d40", _of("training_seconds"), 26, "s"),
    ("GPU, WN18RR test evaluation, d=40", "gpu_evaluation", _of("seconds", "murp", "median"), 0.03, "s"),
    ("GPU, sixteen runs side by side against sixteen times one, in all", "gpu_sweep", _of("wall_ratio"), 0.25, ""),
    ("GPU, step at 10 million entities against 41 thousand", "gpu_many_entities", _of("ratio"), 1.3, ""),
    (
        "GPU, peak memory at 10 million entities against the parameters",
        "gpu_many_entities",
        lambda figures: _largest(figures, "peak_over_parameters"),
        2.2,
        "",
    ),
    (
        "CPU, MuRP d=40 epoch against the textbook's",
        "cpu_step",
        _of("times_faster", "numba against textbook"),
        -40,
        "",
    ),
    ("CPU, WN18RR test evaluation against one query at a time", "cpu_evaluation", _of("times_faster"), -300, ""),
    (
        "CPU, default threads against one thread beside 1, 2 and 4 busy loops, slowest case",
        "cpu_neighbours",
        lambda figures: _slowest(figures, "beside 1", "beside 2", "beside 4"),
        1.2,
        "",
    ),
    (
        "CPU, default threads against one thread under half a core, slowest case",
        "cpu_neighbours",
        lambda figures: _slowest(figures, "under half a core"),
        1.2,
        "",
    ),
    ("CPU, step at 10 million entities against 41 thousand", "cpu_many_entities", _of("ratio"), 2, ""),
    (
        "CPU, peak memory at 10 million entities less a constant against the parameters",
        "cpu_many_entities",
        lambda figures: _largest(figures, "peak_less_constant_over_parameters"),
        1.3,
        "",
    ),
    (
        "CPU, second start of `murp train` to the first step",
        "cpu_start_up",
        _of("seconds", "first step, numba", "median"),
        3,
        "s",
    ),
    ("`murp --help`", "cpu_start_up", _of("seconds", "murp --help", "median"), 0.4, "s"),
    (
        "`murp plot`, the disk of about ten thousand points, slowest kind",
        "cpu_plots",
        lambda figures: max(float(spread["median"]) for spread in figures["seconds"].values()),
        5,
        "s",
    ),
    (
        "the explorer's disk, a frame in motion, 95 of 100 in the slowest case",
        "explorer_frames",
        lambda figures: max(part["p95"] for case in figures["frame_ms"].values() for part in case.values()) / 1e3,
        1 / 30,
        "s",
    ),
    ("ten million triples read, numbered, split", "cpu_reading", _of("parsed", "seconds", "median"), 30, "s"),
)
