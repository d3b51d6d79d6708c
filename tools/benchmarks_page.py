"""Write docs/benchmarks.md and its plots from the stored results; with --check, only say whether they are up to date.

    python tools/benchmarks_page.py

What was not measured yet is left out of the page. No figure on it is typed by hand but the bars.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS, DOCS = ROOT / "results", ROOT / "docs"
Result = dict[str, Any]
NAMES = {"murp": "MuRP", "mure": "MuRE"}


def result(name: str) -> Result | None:
    """One stored result, None where there is none."""
    file = RESULTS / f"{name}.json"
    values: Result | None = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return values


def page() -> str:
    """The whole page."""
    parts = [
        "# Benchmarks",
        "Made by `python tools/benchmarks_page.py` from the files under [results/](../results/), which `make bench` "
        "(two CPU cores are enough) and `make bench-gpu` write. A figure is the median over repeats, least and most "
        "in brackets; what is compared took turns in one run. What was expected of the engines, and when that was put "
        "on record, is in [PREDICTIONS.md](../benchmarks/PREDICTIONS.md).",
    ]
    for section in (
        bars,
        gpu_runs,
        gpu_steps,
        sweeps,
        cpu_steps,
        evaluations,
        many_entities,
        start_up,
        reading,
        pictures,
        frames,
        references,
    ):
        parts += section()
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def time(seconds: float) -> str:
    """With its unit, three digits: 9.31 µs, 1.20 ms, 6.40 s."""
    shown = float(f"{seconds:.3g}")  # first, so that 0.9996 s are not 1000 ms
    if shown >= 100:
        return f"{seconds:.0f} s"
    unit, size = next(scale for scale in (("s", 1.0), ("ms", 1e-3), ("µs", 0.0)) if shown >= scale[1])
    return f"{shown / (size or 1e-6):#.3g} {unit}".replace(". ", " ")


def spread(values: Result) -> str:
    return f"{time(values['median'])} ({time(values['least'])} to {time(values['most'])})"


def times(number: float) -> str:
    return f"{number:.0f}" if number >= 10 else f"{number:.2f}" if number < 3 else f"{number:.1f}"


def decimals(number: float) -> str:
    """As the literature prints a rank's metric: .477"""
    return f"{number:.3f}".removeprefix("0")


def machine(stored: Result) -> str:
    """One line on where and with what a result was measured."""
    here = stored["machine"]
    packages = ("torch", "numba", "triton", "geoopt", "pykeen", "pyarrow")
    versions = ", ".join(f"{name} {here[name]}" for name in packages if name in here)
    return f"*{here['device']}, {here['cores']} cores; murp {here['murp']}, {versions}; {stored['date'][:10]}.*"


def bars() -> list[str]:
    """What the project set itself, and what was measured."""
    rows = [row for row in (bar(*entry) for entry in BARS) if row]
    if not rows:
        return []
    return ["## The bars", table(["what", "bar", "measured", "met"], rows)]


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


def gpu_runs() -> list[str]:
    """Whole runs with the quality they reached."""
    stored = {path.stem: result(path.stem) for path in sorted(RESULTS.glob("gpu_*-d*.json"))}
    rows = []
    for run in stored.values():
        assert run is not None
        settings, figures = run["settings"], run["figures"]
        test = figures["test"]
        rows.append(
            [
                f"{NAMES[settings['model']]} d={settings['dim']}, {Path(settings['data']).name}",
                str(settings["epochs"]),
                time(figures["training_seconds"]),
                time(figures["microseconds_a_step"] / 1e6),
                time(figures["validation_seconds"]),
                *(f"{decimals(test[p]['mrr'])}, {decimals(test[p]['hits@10'])}" for p in ("standard", "paper")),
            ]
        )
    if not rows:
        return []
    head = ["run", "epochs", "training", "a step", "validation", "MRR, H@10 `standard`", "MRR, H@10 `paper`"]
    note = (
        "Batch 128, 50 negatives, float32, seed 0; training time is after a warm-up epoch in the same process and "
        "without validation; the checkpoint is chosen by MRR on valid and evaluated on test."
    )
    return ["## Whole runs on a GPU", table(head, rows), note, machine(next(iter(stored.values())))]  # type: ignore[arg-type]


def gpu_steps() -> list[str]:
    stored = result("gpu_step")
    if stored is None:
        return []
    rows = [[_words(name), spread(values)] for name, values in stored["figures"]["seconds_a_step"].items()]
    return ["## A step on a GPU", f"{stored['what'].capitalize()}.", table(["", "a step"], rows), machine(stored)]


def _words(key: str) -> str:
    """triton_murp_d40 → MuRP d=40, triton"""
    *engine, model, dim = key.split("_")
    return f"{NAMES[model]} d={dim.removeprefix('d')}, {' '.join(engine)}"


def sweeps() -> list[str]:
    """Many runs side by side on one GPU."""
    stored = result("gpu_sweep")
    if stored is None:
        return []
    figures = stored["figures"]
    rows = [
        [label, time(figures[f"wall_seconds_{name}"]), time(figures[f"microseconds_a_step_{name}"] / 1e6)]
        for name, label in (("one", "one run alone"), ("all", f"{figures['runs']} runs side by side"))
    ]
    found = [value for value in figures["valid_mrr_standard"].values() if value is not None]
    text = (
        f"Side by side they cost {times(figures['wall_ratio'])} of {figures['runs']} runs one after another, "
        f"{times(figures['step_ratio'])} by the step. {_profile()}MRR on valid, protocol standard, over the grid: "
        f"{decimals(min(found))} to {decimals(max(found))}."
    )
    return ["## Many runs on one GPU", table(["", "in all", "a step"], rows), text, machine(stored)]


def _profile() -> str:
    """What hardware counters say bounds the step of many runs."""
    stored = result("gpu_profile")
    if stored is None:
        return ""
    counters = stored["figures"]["update_kernel, 16 runs"]
    return (
        "Counters of an intermediate version showed what bounds it: with sixteen runs the update kernel issued an "
        f"instruction in {counters['One or More Eligible']:.0f} of 100 cycles, with the L2 cache at "
        f"{counters['L2 Cache Throughput']:.0f} and the memory at {counters['DRAM Throughput']:.0f} % of what "
        "they can do. "
        "So it is instructions and waiting for rows, not bandwidth; rows in parts that stay within a thread, "
        "and half of "
        "the runs on a second stream, followed from that. "
    )


def cpu_steps() -> list[str]:
    stored = result("cpu_step")
    if stored is None:
        return []
    figures = stored["figures"]
    rows = []
    for key, values in figures["seconds_a_step"].items():
        model, _, maker = key.partition(", ")
        against = figures["times_faster"].get(f"numba against {maker}")
        rows.append(
            [
                f"{NAMES[model]}, {maker}",
                spread(values),
                time(figures["epoch_seconds"][key]),
                "" if against is None else f"{times(against)} times",
            ]
        )
    missing = [f"Left out: {name} ({why})." for name, why in figures["left_out"].items()]
    settings = stored["settings"]
    what = f"{stored['what'].capitalize()}; {settings['data']}, d={settings['dim']}, batch {settings['batch_size']}."
    head = ["", "a step", "an epoch", "numba is faster"]
    return [
        "## A step on the CPU",
        what,
        table(head, rows),
        *missing,
        machine(stored),
        "![Step times](benchmarks-step.svg)",
    ]


def evaluations() -> list[str]:
    rows, machines = [], []
    for where, name in (("CPU", "cpu_evaluation"), ("GPU", "gpu_evaluation")):
        stored = result(name)
        if stored is None:
            continue
        figures = stored["figures"]
        for key, values in figures["seconds"].items():
            model, _, rest = key.partition(", ")
            label = NAMES.get(model, model) + (f", {rest}" if rest else "")
            rows.append([f"{where}: {label}", spread(values)])
        if name == "gpu_evaluation":
            whole = figures["textbook_seconds_a_query"]["median"] * stored["settings"]["queries"]
            rows.append([f"{where}: MuRP, one query at a time", f"{time(whole)} (scaled)"])
        machines.append(machine(stored))
    if not rows:
        return []
    return ["## Filtered evaluation of the WN18RR test set", table(["d=40", "both directions"], rows), *machines]


def many_entities() -> list[str]:
    rows, machines = [], []
    for where in ("cpu", "gpu"):
        stored = result(f"{where}_many_entities")
        if stored is None:
            continue
        by = stored["figures"]["by"]
        for size in by.values() if isinstance(by, dict) else by:
            key = "peak_over_parameters" if where == "gpu" else "peak_less_constant_over_parameters"
            row = [where.upper(), f"{size['entities']:,}", spread(size["seconds_a_step"])]
            rows.append([*row, f"{size['parameter_bytes'] / 2**20:,.0f} MiB", f"{times(size[key])} times"])
        machines.append(machine(stored))
    if not rows:
        return []
    note = (
        "MuRP d=40, random triples, float32. The peak is that of training against the parameters' bytes, on the CPU "
        "less that of a process with hardly any entities; of few entities it tells little."
    )
    head = ["", "entities", "a step", "parameters", "peak"]
    return ["## Many entities", note, table(head, rows), *machines]


def start_up() -> list[str]:
    stored = result("cpu_start_up")
    if stored is None:
        return []
    rows = [[f"`{name}`" if " -" in name else name, spread(v)] for name, v in stored["figures"]["seconds"].items()]
    note = "From the start of the process; first steps are those of a second start on WN18RR, imports included."
    return ["## Start", note, table(["", "seconds"], rows), machine(stored)]


def reading() -> list[str]:
    stored = result("cpu_reading")
    if stored is None:
        return []
    names = ("parsed", "parsed and kept", "from the cache")
    loads = [(name, stored["figures"][name]) for name in names]
    rows = [[name, spread(load["seconds"]), f"{load['peak_bytes'] / 2**30:.2f} GiB"] for name, load in loads]
    settings = stored["settings"]
    note = f"{settings['triples']:,} triples in one file of {settings['file_bytes'] / 2**20:,.0f} MiB, split by murp."
    return ["## Reading", note, table(["", "seconds", "peak memory"], rows), machine(stored)]


def pictures() -> list[str]:
    stored = result("cpu_plots")
    if stored is None:
        return []
    rows = [[name, spread(values)] for name, values in stored["figures"]["seconds"].items()]
    settings = stored["settings"]
    note = f"The whole command on {settings['data']}, {settings['entities']:,} points; edges: {settings['edges']}."
    return ["## Pictures", note, table(["`murp plot`", "seconds"], rows), machine(stored)]


def frames() -> list[str]:
    """The explorer's disk in motion."""
    stored = result("explorer_frames")
    if stored is None:
        return []
    settings, figures = stored["settings"], stored["figures"]["frame_ms"]
    rows = [
        [case, motion, str(part["frames"]), *(time(part[key] / 1e3) for key in ("median", "p95", "script_median"))]
        for case, motions in figures.items()
        for motion, part in motions.items()
    ]
    window = " × ".join(str(pixels) for pixels in settings["viewport"])
    note = (
        f"The page of a trained run, {settings['data']}, {settings['points']:,} points, {settings['edges']:,} edges of "
        f"{settings['relation']}, in a window of {window} CSS pixels, at one and two device pixels each; "
        f"{settings['browser']}, so that the CPU paints as well. From one frame to the next with the browser's clock "
        "off; `recentre` includes asking the server. A moving picture leaves out what the machine is too slow for: "
        "edges far from the middle, and the second device pixel. At rest everything is drawn."
    )
    head = ["", "", "frames", "a frame, median", "95 of 100", "of the median, the page's script"]
    return ["## The explorer's disk in motion", note, table(head, rows), machine(stored)]


def references() -> list[str]:
    """Stored reference runs: every engine with the quality it reached."""
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        stored = json.loads(path.read_text(encoding="utf-8"))
        if "selected_epoch" not in stored or "metrics" not in stored:
            continue
        config, test, here = stored["config"], stored["metrics"]["test"], stored["environment"]
        run = f"{NAMES[config['model']]} d={config['dim']}, {Path(config['data']).name}"
        quality = (f"{decimals(test[p]['mrr'])}, {decimals(test[p]['hits@10'])}" for p in ("standard", "paper"))
        how = [str(config["epochs"]), here.get("engine", "torch"), here["device"], time(stored["wall_seconds"])]
        rows.append([run, *how, *quality])
    if not rows:
        return []
    head = ["run", "epochs", "engine", "device", "in all", "MRR, H@10 `standard`", "MRR, H@10 `paper`"]
    return ["## Reference runs", table(head, rows)]


def step_times() -> dict[str, dict[str, float]]:
    """What the plot shows: place → label → seconds a step."""
    shown: dict[str, dict[str, float]] = {}
    if (cpu := result("cpu_step")) is not None:
        figures = cpu["figures"]["seconds_a_step"]
        shown["CPU"] = {f"{NAMES[k[:4]]}, {k[6:]}": values["median"] for k, values in figures.items()}
    if (gpu := result("gpu_step")) is not None:
        figures = gpu["figures"]["seconds_a_step"]
        shown["GPU"] = {_words(key): values["median"] for key, values in figures.items()}
    return shown


def plot(shown: dict[str, dict[str, float]], path: Path) -> None:
    """Step times as dots on a log scale, slowest first; what is shown is also the file's description."""
    import matplotlib

    matplotlib.use("svg")
    # Without a date and with a fixed salt the same figures give the same file.
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


def up_to_date() -> bool:
    """Whether page and plot are those of the stored results."""
    file, drawn = DOCS / "benchmarks.md", DOCS / "benchmarks-step.svg"
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
    (DOCS / "benchmarks.md").write_text(page(), encoding="utf-8")
    if shown := step_times():
        plot(shown, DOCS / "benchmarks-step.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
