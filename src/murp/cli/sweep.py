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
    from murp.api.run import Run
    from murp.training.trials import Sweep


def add(commands: Commands) -> None:
    """Every setting of :class:`Config` is an option that takes several values."""
    command = commands.add_parser("sweep", help="train a grid of settings; on a GPU, several runs at the same time")
    command.add_argument(
        "--out", metavar="FOLDER", help="folder for the runs; finished runs are kept; default: a new one under runs/"
    )
    add_output(command, "one JSON object per line: every epoch, then the table")
    command.add_argument("--quiet", action="store_true", help="print only warnings and errors to standard error")
    command.set_defaults(run=run)


def settings(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """An option with one value or several for each setting of the runs that ``words`` describe."""
    add_settings(command, words, several=True)


def run(options: argparse.Namespace) -> None:
    """Train the grid and print the validation MRR of every run, best first; raise if any of them failed."""
    with fast_imports():
        from murp.api.training import sweep
        from murp.training import progress

    given = given_settings(options)
    data = given.pop("data", [Config.data])
    if len(data) > 1:
        raise ConfigError("a sweep has one graph: give data one value, and each graph a sweep of its own.")
    if options.quiet:
        display.be_quiet()
    shown = progress.chosen(json=options.json, quiet=options.quiet)
    found = sweep(data[0], out=options.out, progress=shown, **given)
    failed = {trial.name: str(trial.error) for trial in found if trial.error is not None}
    try:
        _report(options, found, failed)
    finally:
        if failed:  # told by the exit status, be the report read or not
            raise MurpError(f"{len(failed)} of {len(found)} runs failed.")


def _report(options: argparse.Namespace, found: Sweep[Run], failed: dict[str, str]) -> None:
    """The runs, best first; of several seeds the mean and the deviation over them too."""
    groups = found.over_seeds()
    several = any(len(group.seeds) > 1 for group in groups)
    if options.json:
        over = {"over_seeds": [dataclasses.asdict(group) for group in groups]} if several else {}
        best = {one.name: one.mrr for one in found}
        print(json.dumps({"out": str(found.out), "best_mrr": best, "failed": failed, **over}))
        return
    protocol = next((one.run.config.validated_by for one in found if one.run is not None), "standard")
    about = {"split": "valid", "protocol": protocol}
    if options.format == "text":
        print(f"MRR on valid, protocol {protocol}, at the best epoch\n")
    if options.format == "text" or not several:
        cells: list[list[object]] = [
            [one.name, "failed", MISSING] if one.run is None else [one.name, Number(one.mrr), one.epoch]
            for one in found
        ]
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
        if options.out is None:
            print(f"\nsaved in {found.out}")
