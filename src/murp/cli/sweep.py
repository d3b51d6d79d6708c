"""``murp sweep``: a grid of settings, side by side on one GPU."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from murp import display
from murp.cli.settings import add_settings, given_settings
from murp.cli.text import Commands, add_output, fast_imports, print_table
from murp.config import Config
from murp.errors import ConfigError, MurpError, printable
from murp.tables import MISSING, Number

if TYPE_CHECKING:
    from murp.runs import Run
    from murp.training.grid import OverSeeds


def add(commands: Commands) -> None:
    """Every setting of :class:`Config` is an option that takes several values."""
    command = commands.add_parser("sweep", help="train a grid of settings; on one GPU side by side")
    command.add_argument("--out", metavar="FOLDER", required=True, help="folder for the runs; finished ones are kept")
    add_output(command, "one JSON object a line: every epoch, then the table")
    command.add_argument("--quiet", action="store_true", help="nothing on standard error but warnings and errors")
    command.set_defaults(run=run)


def settings(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """An option with one value or several for each setting of the runs that ``words`` describe."""
    add_settings(command, words, several=True)


def run(options: argparse.Namespace) -> None:
    """Train the grid and print the validation MRR of every run, best first; raise if any of them failed."""
    with fast_imports():
        from murp.training import progress
        from murp.training.grid import grid, over_seeds, run_names, sweep

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
        _report(options, rows, over_seeds(settings, results), failed)
    finally:
        if failed:  # told by the exit status, be the report read or not
            raise MurpError(f"{len(failed)} of {len(rows)} runs failed.")


def _report(
    options: argparse.Namespace,
    rows: Sequence[tuple[str, Run | MurpError]],
    groups: Sequence[OverSeeds],
    failed: dict[str, str],
) -> None:
    """The runs, best first; of several seeds the mean and the deviation over them in their place."""
    several = any(len(group.seeds) > 1 for group in groups)
    if options.json:
        best = {name: None if isinstance(r, MurpError) else r.state["best_mrr"] for name, r in rows}
        over = {"over_seeds": [dataclasses.asdict(group) for group in groups]} if several else {}
        print(json.dumps({"out": options.out, "best_mrr": best, "failed": failed, **over}))
        return
    about = {"split": "valid", "protocol": "standard"}
    if options.format == "text":
        print("MRR on valid, protocol standard, at the best epoch\n")
    if options.format == "text" or not several:
        cells: list[list[object]] = [
            [name, "failed", MISSING] if isinstance(r, MurpError)
            else [name, Number(r.state["best_mrr"]), r.state["best_epoch"]]
            for name, r in rows
        ]  # fmt: skip
        print_table(options, ["run", "MRR", "epoch"], cells, right=(1, 2), about=about)
    if several:
        best_first = sorted(groups, key=lambda group: -(group.mean or 0.0))
        means = [[g.run, Number(g.mean), Number(g.deviation, 4), Number(len(g.seeds))] for g in best_first]
        if options.format == "text":
            print("\nover seeds (deviation of a sample, n - 1)\n")
        print_table(options, ["run", "mean MRR", "deviation", "seeds"], means, right=(1, 2, 3), about=about)
    if options.format == "text":
        for name, reason in failed.items():
            print(f"\n{printable(name)}: {reason}")
