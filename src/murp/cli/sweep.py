"""``murp sweep``: a grid of settings, side by side on one GPU."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from murp import display
from murp.cli.settings import add_settings, given_settings
from murp.cli.text import Commands, fast_imports, figure, table
from murp.config import Config
from murp.errors import ConfigError, MurpError, printable

if TYPE_CHECKING:
    from murp.runs import Run


def add(commands: Commands) -> None:
    """Every setting of :class:`Config` is an option that takes several values."""
    command = commands.add_parser("sweep", help="train a grid of settings; on one GPU side by side")
    command.add_argument("--out", metavar="FOLDER", required=True, help="folder for the runs; finished ones are kept")
    command.add_argument("--json", action="store_true", help="one JSON object a line: every epoch, then the table")
    command.add_argument("--quiet", action="store_true", help="nothing on standard error but warnings and errors")
    command.set_defaults(run=run)


def settings(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """An option with one value or several for each setting of the runs that ``words`` describe."""
    add_settings(command, words, several=True)


def run(options: argparse.Namespace) -> None:
    """Train the grid and print the validation MRR of every run, best first; raise if any of them failed."""
    with fast_imports():
        from murp.training import progress
        from murp.training.grid import grid, run_names, sweep

    given = given_settings(options)
    data = given.pop("data", [Config.data])
    if len(data) > 1:
        raise ConfigError("a sweep has one --data; give each dataset a sweep of its own.")
    settings = grid(given)
    if options.quiet:
        display.be_quiet()
    shown = progress.chosen(json=options.json, quiet=options.quiet)
    results = sweep(data[0], settings, out=options.out, progress=shown)
    rows = sorted(
        zip(run_names(settings), results, strict=True),
        key=lambda row: 1.0 if isinstance(row[1], MurpError) else -(row[1].state["best_mrr"] or 0.0),
    )
    failed = {name: str(result) for name, result in rows if isinstance(result, MurpError)}
    try:
        _report(options, rows, failed)
    finally:
        if failed:  # told by the exit status, be the report read or not
            raise MurpError(f"{len(failed)} of {len(rows)} runs failed.")


def _report(options: argparse.Namespace, rows: Sequence[tuple[str, Run | MurpError]], failed: dict[str, str]) -> None:
    if options.json:
        best = {name: None if isinstance(r, MurpError) else r.state["best_mrr"] for name, r in rows}
        print(json.dumps({"out": options.out, "best_mrr": best, "failed": failed}))
    else:
        print("MRR on valid, protocol standard, at the best epoch\n")
        cells = [
            [name, "failed", "–"] if isinstance(r, MurpError)
            else [name, figure(r.state["best_mrr"]), r.state["best_epoch"]]
            for name, r in rows
        ]  # fmt: skip
        print(table(["run", "MRR", "epoch"], cells, right=(1, 2)))
        for name, reason in failed.items():
            print(f"\n{printable(name)}: {reason}")
