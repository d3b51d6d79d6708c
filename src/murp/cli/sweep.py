"""``murp sweep``: a grid of settings, side by side on one GPU."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import get_type_hints

from murp.cli.text import Commands, figure, table
from murp.config import Config


def add(commands: Commands) -> None:
    """Every setting of :class:`Config` is an option that takes several values."""
    command = commands.add_parser("sweep", help="train a grid of settings; on one GPU side by side")
    command.add_argument("--out", metavar="FOLDER", required=True, help="folder for the runs; finished ones are kept")
    command.add_argument("--json", action="store_true", help="one JSON object a line: every epoch, then the table")
    hints = get_type_hints(Config)
    settings = command.add_argument_group("settings, each with one value or several")
    for knob in dataclasses.fields(Config):
        if hints[knob.name] is bool:
            continue
        settings.add_argument(
            "--" + knob.name.replace("_", "-"),
            nargs="+",
            type=hints[knob.name],
            default=argparse.SUPPRESS,
            choices=knob.metadata["choices"] or None,
            metavar=None if knob.metadata["choices"] else "X",
            help=f"{knob.metadata['help']}; default: {knob.default}".replace("%", "%%"),
        )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Train the grid and print the validation MRR of every run, best first."""
    from murp.errors import ConfigError, MurpError
    from murp.training import progress
    from murp.training.grid import grid, run_names, sweep

    names = {knob.name for knob in dataclasses.fields(Config)}
    given = {name: values for name, values in vars(options).items() if name in names}
    data = given.pop("data", [Config.data])
    if len(data) > 1:
        raise ConfigError("a sweep has one --data; give each dataset a sweep of its own.")
    settings = grid(given)
    shown = progress.JsonLines() if options.json else progress.for_terminal()
    results = sweep(data[0], settings, out=options.out, progress=shown)
    rows = sorted(
        zip(run_names(settings), results, strict=True),
        key=lambda row: -1.0 if isinstance(row[1], MurpError) else -(row[1].state["best_mrr"] or 0.0),
    )
    if options.json:
        best = {name: None if isinstance(r, MurpError) else r.state["best_mrr"] for name, r in rows}
        print(json.dumps({"out": options.out, "best_mrr": best}))
        return
    print("MRR on valid, protocol standard, at the best epoch\n")
    cells = [
        [name, "failed: " + str(r), ""] if isinstance(r, MurpError)
        else [name, figure(r.state["best_mrr"]), r.state["best_epoch"]]
        for name, r in rows
    ]  # fmt: skip
    print(table(["run", "MRR", "epoch"], cells, right=(1, 2)))
