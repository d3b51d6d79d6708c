"""Write docs/benchmarks.md and its plots from the stored results; with --check, only say whether they are up to date.

    python tools/benchmarks_page.py

What was not measured yet is left out of the page. No value on it is typed by hand, except the bars.
"""

from __future__ import annotations

import argparse
import json
import sys

import benchmark_results as stored
import origins
from benchmark_bars import bars, headline
from benchmark_plot import plot, step_times
from benchmark_quality import extensions, half_precision, hierarchies, local_negatives, searches
from benchmark_scale import large_graphs, rows_by_table_size, whole_run_at_scale
from benchmark_training import cpu_steps, gpu_runs, gpu_steps, references, sweeps
from benchmark_uses import (
    any_model,
    earlier,
    evaluations,
    frames,
    many_entities,
    neighbours,
    pictures,
    ranks,
    reading,
    serving,
    start_up,
    tables_of_a_gpu,
    time_to_quality,
    watching,
)
from murp.paper.contents import contents

HEADLINE = (
    "How long murp takes and how much memory it needs, on CPUs and on a GPU, beside limits that we set ourselves."
)
ORIGINS = (
    "**Where the values come from.** `python tools/benchmarks_page.py` makes this page from the files under "
    "[results/](../results/). `make bench` measures on a CPU (two cores are enough), `make bench-gpu` on a GPU. "
    "Benchmarks that take long or need other files have their own scripts under [benchmarks/](../benchmarks/). Each "
    "result file names the command that made it (`command`). [results/intel/](../results/intel/) has the same CPU "
    "benchmarks on an Intel processor, and [results/amd/](../results/amd/) some on other AMD processors; the limits "
    "and the comparison with an earlier commit show all of them. A virtual machine may not say which processor it has: "
    "then its family and model are given, where they were stored."
)
READING = (
    "**How to read the tables.** A time with brackets is the median of several repeats; the brackets show the minimum "
    "and the maximum. A time without brackets was measured once, unless the text says otherwise. The values that one "
    "table compares were measured in turns in one run. Only whole runs, and CPU against GPU, were measured separately. "
    "[PREDICTIONS.md](../benchmarks/PREDICTIONS.md) says what we expected of the engines before we measured."
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
    tables_of_a_gpu,
    rows_by_table_size,
    whole_run_at_scale,
    large_graphs,
    local_negatives,
    half_precision,
    hierarchies,
    extensions,
    searches,
    start_up,
    reading,
    pictures,
    frames,
    watching,
    serving,
    ranks,
    references,
)


def page() -> str:
    """The whole page."""
    parts = [part for section in SECTIONS for part in section()]
    parts += origins.section(stored.benchmarks(), stored.RESULTS)
    titles = [part.removeprefix("## ") for part in parts if part.startswith("## ")]
    parts = ["# Benchmarks", f"{HEADLINE} {headline()}".strip(), contents(titles), ORIGINS, READING, *parts]
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
