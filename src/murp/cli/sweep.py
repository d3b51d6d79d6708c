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
    from murp.api.run import Run
    from murp.training.trials import Sweep


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
        from murp.api.training import sweep
        from murp.training import progress

    given = given_settings(options)
    data = given.pop("data", [Config.data])
    if len(data) > 1:
        raise ConfigError("a sweep has one --data; give each dataset a sweep of its own.")
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
    if options.json:
        print(json.dumps({"out": options.out, "best_mrr": {one.name: one.mrr for one in found}, "failed": failed}))
        return
    print("MRR on valid, protocol standard, at the best epoch\n")
    cells = [[one.name, "failed", "–"] if one.run is None else [one.name, figure(one.mrr), one.epoch] for one in found]
    print(table(["run", "MRR", "epoch"], cells, right=(1, 2)))
    for name, reason in failed.items():
        print(f"\n{printable(name)}: {reason}")
