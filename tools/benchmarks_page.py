"""Write docs/benchmarks.md and its plots from the stored results; with --check, only say whether they are up to date.

    python tools/benchmarks_page.py

What was not measured yet is left out of the page. No figure on it is typed by hand but the bars.
"""

from __future__ import annotations

import argparse
import json
import sys

import benchmark_results as stored
import origins
from benchmark_bars import bars
from benchmark_plot import plot, step_times
from benchmark_training import cpu_steps, gpu_runs, gpu_steps, references, sweeps
from benchmark_uses import (
    any_model,
    earlier,
    evaluations,
    frames,
    many_entities,
    neighbours,
    pictures,
    reading,
    start_up,
    time_to_quality,
)

ORIGINS = (
    "Made by `python tools/benchmarks_page.py` from the files under [results/](../results/). `make bench` (two CPU "
    "cores are enough) writes `cpu_….json` and `make bench-gpu` `gpu_….json`, except `gpu_profile.json`: that was read "
    "off Nsight Compute by hand, and no script makes it again. `explorer_frames.json` is written by `python "
    "benchmarks/explorer_frames.py`, `cpu_earlier.json` by `python benchmarks/cpu_earlier.py`, the reference runs by "
    "`python benchmarks/reference_run.py`. [results/intel/](../results/intel/) has results of the same CPU benchmarks "
    "on an Intel processor. The bars and the comparison with an earlier commit show both processors; the other "
    "sections on the CPU show what lies in results/ itself."
)
READING = (
    "A time with brackets is the median over repeats, least and most in brackets; one without was measured once, "
    "unless it says otherwise. What a table compares took turns in one run, whole runs and CPU against GPU aside. What "
    "was expected of the engines, and when that was put on record, is in "
    "[PREDICTIONS.md](../benchmarks/PREDICTIONS.md)."
)
SECTIONS = (
    bars,
    gpu_runs,
    gpu_steps,
    sweeps,
    cpu_steps,
    any_model,
    time_to_quality,
    evaluations,
    earlier,
    neighbours,
    many_entities,
    start_up,
    reading,
    pictures,
    frames,
    references,
)


def page() -> str:
    """The whole page."""
    parts = ["# Benchmarks", ORIGINS, READING]
    for section in SECTIONS:
        parts += section()
    parts += origins.section(stored.benchmarks(), stored.RESULTS)
    return "\n\n".join(parts) + "\n"


def up_to_date() -> bool:
    """Whether page and plot are those of the stored results."""
    file, drawn = stored.DOCS / "benchmarks.md", stored.DOCS / "benchmarks-step.svg"
    if not file.exists() or file.read_text(encoding="utf-8") != page():
        return False
    shown = step_times()
    described = json.dumps(shown).replace("&", "&amp;").replace('"', "&quot;")
    text = drawn.read_text(encoding="utf-8") if drawn.exists() else ""
    return not shown or described in text or json.dumps(shown) in text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is out of date")
    if parser.parse_args().check:
        return int(not up_to_date())
    origins.warn(stored.benchmarks(), stored.RESULTS)
    (stored.DOCS / "benchmarks.md").write_text(page(), encoding="utf-8")
    if shown := step_times():
        plot(shown, stored.DOCS / "benchmarks-step.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
