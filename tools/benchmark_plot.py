"""The plot of docs/benchmarks.md: what a step takes, by engine and place."""

from __future__ import annotations

import json
from pathlib import Path

from benchmark_results import NAMES, result
from benchmark_training import step_words


def step_times() -> dict[str, dict[str, float]]:
    """What the plot shows: place → label → seconds a step."""
    shown: dict[str, dict[str, float]] = {}
    if (cpu := result("cpu_step")) is not None:
        figures = cpu["figures"]["seconds_a_step"]
        shown["CPU"] = {f"{NAMES[k[:4]]}, {k[6:]}": values["median"] for k, values in figures.items()}
    if (gpu := result("gpu_step")) is not None:
        figures = gpu["figures"]["seconds_a_step"]
        shown["GPU"] = {step_words(key): values["median"] for key, values in figures.items()}
    return shown


def plot(shown: dict[str, dict[str, float]], path: Path) -> None:
    """Step times as dots on a log scale, slowest first; what is shown is also the file's description."""
    import matplotlib

    matplotlib.use("svg")
    # Without a date and with a fixed salt the same values give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "murp"
    from matplotlib import pyplot

    colours = {"CPU": "#0072B2", "GPU": "#D55E00"}  # told apart by colour-blind readers too
    points = [(f"{place}: {label}", t, place) for place, of in shown.items() for label, t in of.items()]
    points.sort(key=lambda point: -point[1])
    figure, axes = pyplot.subplots(figsize=(7, 0.6 + 0.27 * len(points)), layout="constrained")
    for place, colour in colours.items():
        mine = [(i, t) for i, (_, t, where) in enumerate(points) if where == place]
        if mine:
            rows, values = zip(*mine, strict=True)
            axes.plot(values, rows, "o" if place == "CPU" else "s", color=colour)
    axes.set_yticks(range(len(points)), [label for label, _, _ in points])
    axes.set_xscale("log")
    axes.set_xlabel("seconds a step (128 triples, 50 negatives each)")
    axes.grid(axis="x", which="both", alpha=0.3)
    axes.invert_yaxis()
    figure.savefig(path, metadata={"Date": None, "Description": json.dumps(shown)})
    pyplot.close(figure)
