"""Write docs/field.md from results/field/; with --check, only say whether it is up to date.

    python tools/field_page.py

The rows stand in benchmarks/field.toml, published values in benchmarks/field_published.toml; every value of ours
comes from what benchmarks/field.py stored, a file a row and seed. Rows that were not trained yet are named as such.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import origins
from benchmark_results import time
from field_rows import Row, rows, same
from murp.paper.contents import contents
from murp.paper.experiments import published
from murp.recipes import RECIPES
from murp.tables import MISSING, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "results" / "field", ROOT / "docs" / "field.md"
PUBLISHED = ROOT / "benchmarks" / "field_published.toml"
Values = Mapping[str, Any]
PROTOCOL = "standard"
HEADER = [
    "model", "MRR", "H@1", "H@3", "H@10", "seeds", "parameters", "training, GPU", "training, processor", "recipe",
    "published MRR", "H@10", "d", "protocol", "source",
]  # fmt: skip


def stored(row: Row, folder: Path) -> dict[str, Values]:
    """The results of a row by file name, a seed each, that were made with the settings that it has now."""
    found = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in folder.glob(f"{row.name}-seed*.json")}
    return {
        name: one for name, one in sorted(found.items()) if same(one["settings"], row.config(one["settings"]["seed"]))
    }


def page(folder: Path = RESULTS) -> str:
    """The whole page."""
    everything = rows()
    found = {row.name: stored(row, folder) for row in everything}
    opening = [
        "# The field, measured",
        "Every model of this package on the usual datasets, trained by us and evaluated under one protocol. `python "
        "tools/field_page.py` makes this page from the results of `benchmarks/field.py` in results/field/.",
        f"Metrics on test, protocol `{PROTOCOL}`, means over the seeds (± their standard deviation if there are "
        "several). The checkpoint is the one with the best MRR on valid. `training, GPU` is the time of one run with "
        "validation, without compiling. A time with `(steps)` is the time of one step, measured alone for a few "
        "seconds, times the number of steps, without validation: such a run was trained beside others. `training, "
        "processor` is measured in this way for every row.",
    ]
    parts: list[str] = []
    for data, dim in dict.fromkeys((row.data, row.dim) for row in everything):
        parts += section(data, dim, [row for row in everything if (row.data, row.dim) == (data, dim)], found, folder)
    parts += [*judged(everything, found), *sources()]
    all_found = {name: one for results in found.values() for name, one in results.items()}
    for row in everything:
        all_found |= timed(row, folder) | timed(row, folder, "times-gpu")
    missing = [row.name for row in everything if not found[row.name]]
    if missing:
        parts += ["## Not measured yet", f"{len(missing)} of {len(everything)} rows: {', '.join(missing)}."]
    parts += origins.section(all_found, folder)
    titles = [part.removeprefix("## ") for part in parts if part.startswith("## ")]
    return "\n\n".join([*opening, contents(titles), *parts]) + "\n"


def section(data: str, dim: int, those: Sequence[Row], found: Mapping[str, Values], folder: Path) -> list[str]:
    """The table of a dataset and dimension, best first, and the command of each row; nothing where none is trained."""
    trained = [row for row in those if found[row.name]]
    if not trained:
        return []
    trained.sort(key=lambda row: -_mean(found[row.name], "mrr"))
    lines = [line(row, found[row.name], folder) for row in trained]
    commands = "\n".join(row.command() for row in trained)
    return [
        f"## {data}, d = {dim}",
        table(HEADER, lines, right=(*range(1, 9), 10, 11, 12), format="markdown"),
        f"The command for each row; evaluate the run with `murp evaluate`:\n\n```sh\n{commands}\n```",
    ]


def line(row: Row, results: Values, folder: Path) -> list[str]:
    """One row of a table."""
    figures = [_spread(results, name) for name in ("mrr", "hits@1", "hits@3", "hits@10")]
    first = next(iter(results.values()))["figures"]
    name = f"**{row.recipe}**" if row.recipe else ""
    label = f"{row.model} (best)" if is_best(row) else row.model
    times = on_gpu(row, results, folder), on_processor(row, folder)
    return [label, *figures, str(len(results)), f"{first['parameters']:,}", *times, name, *theirs(row)]


def is_best(row: Row) -> bool:
    """Whether its results are those that ``murp recipes`` shows for its recipe."""
    return row.recipe is not None and any(
        fnmatch.fnmatch(f"field/{row.name}-seed0.json", pattern) for pattern in RECIPES[row.recipe].stored
    )


def _values(results: Values, metric: str) -> list[float]:
    return [one["figures"]["test"][PROTOCOL][metric] for one in results.values()]


def _mean(results: Values, metric: str) -> float:
    return statistics.fmean(_values(results, metric))


def _spread(results: Values, metric: str) -> str:
    values = _values(results, metric)
    deviation = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 and metric == "mrr" else ""
    return f"{statistics.fmean(values):.3f}{deviation}"


def on_gpu(row: Row, results: Values, folder: Path) -> str:
    """The median of the seconds of runs that had the GPU for themselves; if there are none, what its steps take."""
    runs = [one for one in results.values() if one["settings"]["device"] == "cuda"]
    if not runs:
        return MISSING
    least = min(one["figures"]["side_by_side"] for one in runs)
    taken = [one["figures"]["seconds"] for one in runs if one["figures"]["side_by_side"] == least]
    if least > 1:
        for steps in timed(row, folder, "times-gpu").values():
            return f"{time(steps['figures']['expected_seconds'])} (steps)"
    beside = "" if least == 1 else f" (beside {least - 1} others)"
    return f"{time(statistics.median(taken))}{beside}"


def timed(row: Row, folder: Path, kind: str = "times") -> dict[str, Values]:
    """What its steps take on a processor, or on a GPU (``times-gpu``), by file name.

    One file, if there is one with the settings that the row has now.
    """
    file = folder / kind / f"{row.name}.json"
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else None
    return {f"{kind}/{row.name}": found} if found and same(found["settings"], row.config(0)) else {}


def on_processor(row: Row, folder: Path) -> str:
    """What the whole training takes there, as measured over a few seconds of steps."""
    for found in timed(row, folder).values():
        seconds, cores = found["figures"]["expected_seconds"], found["machine"]["cores"]
        return f"{seconds / 60:.0f} min, {cores} cores" if seconds >= 120 else f"{time(seconds)}, {cores} cores"
    return MISSING


def theirs(row: Row) -> list[str]:
    """MRR, H@10, dimension, protocol and source of what others published of the model on this dataset."""
    if row.model in ("murp", "mure"):
        told = published()["table1"].get(row.data, {}).get(row.model, {}).get(str(row.dim))
        return [MISSING] * 5 if told is None else [f"{told[0]:.3f}", f"{told[1]:.3f}", str(row.dim), "`paper`", "murp"]
    known = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    for one in known["figures"]:
        if one["model"] == row.model and row.data in one:
            cell = one[row.data]
            hits = cell.get("hits10") or (cell["hits"][2] if "hits" in cell else None)
            protocol = known["sources"][one["source"]]["protocol"]
            shown = MISSING if hits is None else f"{hits:.3f}"
            return [f"{cell['mrr']:.3f}", shown, str(cell.get("dim", MISSING)), f"`{protocol}`", one["source"]]
    return [MISSING] * 5


def sources() -> list[str]:
    """Where published values come from, and what their protocols are."""
    known = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))
    titles = [f"- {name}: {one['title']}; protocol `{one['protocol']}`" for name, one in known["sources"].items()]
    protocols = [f"- `{name}`: {text}" for name, text in known["protocols"].items()]
    return ["## Published values", "\n".join(titles), "Their protocols:", "\n".join(protocols)]


def judged(everything: Sequence[Row], found: Mapping[str, Values]) -> list[str]:
    """Both recipes where `--recipe auto` has to choose between them, by their MRR on valid."""
    lines = []
    for row in everything:
        if row.recipe and "-recipe-" in row.name and found[row.name]:
            results = list(found[row.name].values())
            mrr = statistics.fmean(one["figures"]["valid"][PROTOCOL]["mrr"] for one in results)
            taken = results[0]["figures"]["auto"] == row.recipe
            lines.append([row.data, row.recipe, f"{mrr:.3f}", str(len(results)), "yes" if taken else ""])
    if not lines:
        return []
    return [
        "## What `--recipe auto` chooses",
        f"MRR on valid, protocol `{PROTOCOL}`, d = 40. The test sets of these graphs were not used for this choice. "
        "`murp recipes` prints the rule.",
        table(["data", "recipe", "MRR on valid", "seeds", "chosen by auto"], lines, right=(2, 3), format="markdown"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 if the page is out of date")
    if parser.parse_args(arguments).check:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page())
    origins.refresh(RESULTS)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
