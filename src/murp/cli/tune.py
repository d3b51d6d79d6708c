"""``murp tune``: a search for settings."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from murp import display, registry
from murp.cli.settings import add_settings, given_settings
from murp.cli.text import Commands, add_output, fast_imports, positive, print_table, whole
from murp.config import Config
from murp.errors import ConfigError
from murp.tables import MISSING, Number

if TYPE_CHECKING:
    from murp.tuning.results import Tuning

SHOWN = 10  # trials in the table


def add(commands: Commands) -> None:
    """Every setting of :class:`Config` is an option that gives it a value; ``--space`` says what is searched."""
    command = commands.add_parser("tune", help="search for good settings; bad trials are stopped early")
    command.add_argument(
        "--trials", type=whole(least=1), default=50, metavar="N", help="total number of trials; default: 50"
    )
    command.add_argument(
        "--storage",
        metavar="FILE",
        help="file that stores the trials; the same command continues; default: a new one under runs/",
    )
    command.add_argument(
        "--space",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=VALUES",
        help="what to search: lr=1..50, model=murp,mure; default: settings with a search range and no given value",
    )
    command.add_argument("--workers", type=whole(least=1), default=1, metavar="N", help="trials at a time; default: 1")
    command.add_argument(
        "--timeout", type=positive(), metavar="SECONDS", help="stop after this time; the same command continues"
    )
    command.add_argument(
        "--recipe", metavar="NAME", help="named set of settings (see `murp recipes`); options override them"
    )
    command.add_argument("--report", action="store_true", help="train nothing; only write the report of --storage")
    add_output(command)
    command.add_argument("--quiet", action="store_true", help="print only warnings and errors to standard error")
    command.set_defaults(run=run)


def settings(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """An option for each setting of the runs that ``words`` describe, with all parts that ``--space`` names."""
    parts = [word.split("=", 1) for word in words if word.split("=", 1)[0] in registry.KINDS and "=" in word]
    named = [word for kind, values in parts for word in (f"--{kind}", *values.split(","))]
    add_settings(command, [*words, *named])


def run(options: argparse.Namespace) -> None:
    """Search, and print the best trials."""
    with fast_imports():
        from murp.api.tuning import tune
        from murp.tuning import report, results
        from murp.tuning.space import read

    given = given_settings(options)
    if options.quiet:
        display.be_quiet()
    if options.report:
        if options.storage is None:
            raise ConfigError("--report needs the --storage to report on.")
        found = results.read(Path(options.storage))
        report.write(found)
    else:
        data = given.pop("data", Config.data)
        if options.recipe is not None:
            given["recipe"] = options.recipe
        found = tune(
            data,
            trials=options.trials,
            storage=options.storage,
            space=read(options.space),
            workers=options.workers,
            timeout=options.timeout,
            **given,
        )
    _print(options, found)


def _print(options: argparse.Namespace, found: Tuning) -> None:
    done = any(trial.state == "complete" for trial in found)
    if options.json:
        best = {"mrr": found.best_mrr, "settings": found.best_settings, "run": str(found.best_run)} if done else None
        columns = found.columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        print(json.dumps({"storage": str(found.storage), "report": str(found.report), "best": best, "trials": rows}))
        return
    ranked = sorted(found, key=lambda trial: -(trial.mrr or 0.0))[: SHOWN if options.format == "text" else None]
    names = list(dict.fromkeys(name for trial in ranked for name in trial.settings))
    cells: list[list[object]] = [
        [
            str(trial.number),
            trial.state,
            MISSING if trial.mrr is None else Number(trial.mrr, 4),
            str(trial.epoch or MISSING),
            *(_text(trial.settings.get(name)) for name in names),
        ]
        for trial in ranked
    ]
    if options.format == "text":
        print(f"MRR on valid, protocol standard, of the best of {len(found)} trials\n")
    about = {"split": "valid", "protocol": "standard"}
    print_table(options, ["trial", "state", "MRR", "epoch", *names], cells, right=(0, 2, 3), about=about)
    if options.format == "text":
        print(f"\nbest run: {found.best_run}" if done else "\nno trial was trained to its end yet")
        print(f"report: {found.report / 'report.md'}")


def _text(value: object) -> str:
    return MISSING if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
