"""Reports of ``murp evaluate`` as tables: of one run, or of several."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from murp.cli.text import print_table
from murp.tables import MISSING, Number

if TYPE_CHECKING:
    from murp.api.run import Run
    from murp.evaluation import Metrics, Report

NOT_STANDARD = "Ranks among drawn candidates are lower than among all entities: do not compare with other protocols."
NAMES = {"mrr": "MRR", **{f"hits@{k}": f"H@{k}" for k in (1, 3, 10)}}


def print_report(options: argparse.Namespace, run: Run, report: Report) -> None:
    """A row for all, for each part, and where it is asked for each relation."""
    parts = [("all", report.overall)]
    parts += [(f"{name}s asked for", part) for name, part in report.by_direction.items()]
    parts += [(f"entities {name} in train", part) for name, part in report.by_seen.items()]
    if options.by_relation:
        parts += sorted(report.by_relation.items())
    if options.format == "text":
        print(described(run))
        print(f"split {report.split}, protocol {report.overall.protocol}, filtered\n")
    header = ["", *_columns(options, report)]
    rows = [[name, *_cells(options, report, part)] for name, part in parts]
    print_table(options, header, rows, right=range(1, len(header)), about=about(options, report))
    if options.format == "text" and report.ranks.sample is not None:
        print(f"\n95 % intervals: {_in_words(report)}\ndigest of the candidates: {report.ranks.sample.digest}")
        print(NOT_STANDARD)


def print_reports(options: argparse.Namespace, runs: Sequence[Run], reports: Sequence[Report]) -> None:
    """A row for each run; by relation, a column for each."""
    first = reports[0]
    if options.format == "text":
        print(f"split {options.split}, protocol {first.overall.protocol}, filtered\n")
    if options.by_relation:
        header, rows = _by_relation(options, reports)
        print_table(options, header, rows, right=range(1, len(header)), about=about(options, first))
    else:
        header = ["run", "model", "d", "data", *_columns(options, first)]
        rows = [
            [path, run.config.model, run.config.dim, run.graph.name, *_cells(options, report, report.overall)]
            for path, run, report in zip(options.path, runs, reports, strict=True)
        ]
        print_table(options, header, rows, right=(2, *range(4, len(header))), about=about(options, first))
    if options.format == "text" and first.ranks.sample is not None:
        print("\n95 % intervals")
        for path, report in zip(options.path, reports, strict=True):
            print(f"{path}: {_in_words(report)}")
        print(f"digest of the candidates: {first.ranks.sample.digest}\n{NOT_STANDARD}")


def _by_relation(options: argparse.Namespace, reports: Sequence[Report]) -> tuple[list[str], list[list[object]]]:
    """The MRR of each run, with its interval where there is one."""
    names = sorted({name for report in reports for name in report.by_relation})
    found: list[tuple[str, list[Metrics | None]]] = [("all", [report.overall for report in reports])]
    found += [(name, [report.by_relation.get(name) for report in reports]) for name in names]
    drawn = [report.ranks.sample is not None for report in reports]
    header = ["MRR of"]
    for path, has in zip(options.path, drawn, strict=True):
        header += [path, *(_bounds(options, path) if has else [])]
    rows: list[list[object]] = []
    for name, parts in found:
        rows.append([name])
        for part, has in zip(parts, drawn, strict=True):
            rows[-1].append(Number(None if part is None else part.mrr))
            rows[-1] += _between(options, part, "mrr") if has else []
        rows[-1].append(Number(next(part.queries for part in parts if part)))
    return [*header, "queries"], rows


def described(run: Run) -> str:
    """What a run is, in a few words."""
    return f"{run.config.model} d={run.config.dim} on {run.graph.name}, epoch {run.state['epoch']}"


def about(options: argparse.Namespace, report: Report | None = None) -> dict[str, str]:
    """Split and protocol of metrics, with the number of candidates and their digest if they were sampled."""
    said = {"split": options.split, "protocol": options.protocol if report is None else report.overall.protocol}
    if report is not None and report.ranks.sample is not None:
        said["digest"] = report.ranks.sample.digest
    return said


def _columns(options: argparse.Namespace, report: Report) -> list[str]:
    shown = _with_intervals(options, report)
    after = {name: [label, *(_bounds(options, label) if name in shown else [])] for name, label in NAMES.items()}
    mrr = after.pop("mrr")
    return [*mrr, "MR", *(title for titles in after.values() for title in titles), "queries"]


def _cells(options: argparse.Namespace, report: Report, part: Metrics) -> list[object]:
    """One part's metrics under :func:`_columns`."""
    shown = _with_intervals(options, report)
    values = {"mrr": part.mrr, **{f"hits@{k}": part.hits[k] for k in (1, 3, 10)}}
    after: dict[str, list[object]] = {
        name: [Number(value), *(_between(options, part, name) if name in shown else [])]
        for name, value in values.items()
    }
    mrr = after.pop("mrr")
    return [*mrr, Number(part.mr, 0), *(cell for cells in after.values() for cell in cells), Number(part.queries)]


def _with_intervals(options: argparse.Namespace, report: Report) -> Sequence[str]:
    """The metrics with an interval beside them: a terminal is wide enough for that of the MRR."""
    if report.ranks.sample is None:
        return ()
    return ("mrr",) if options.format == "text" else tuple(NAMES)


def _bounds(options: argparse.Namespace, label: str) -> list[str]:
    return [f"{label} low", f"{label} high"] if options.format == "csv" else [f"{label} 95 %"]


def _between(options: argparse.Namespace, part: Metrics | None, name: str) -> list[object]:
    """The interval as CSV has it, in two cells, or in one."""
    between = None if part is None else part.intervals.get(name)
    if options.format == "csv":
        return [Number(end) for end in between or (None, None)]
    return [MISSING if between is None else f"{between[0]:.3f} to {between[1]:.3f}"]


def _in_words(report: Report) -> str:
    return ", ".join(
        f"{NAMES[name]} " + (MISSING if between is None else f"{between[0]:.3f} to {between[1]:.3f}")
        for name, between in report.intervals.items()
    )
