"""``murp calibrate``: probabilities that mean what they say."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING

from murp.cli.text import Commands, add_run, figure, table, whole

if TYPE_CHECKING:
    from murp.runs import Run


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("calibrate", help="calibrate probabilities on valid, judge them on test, keep them")
    add_run(command)
    command.add_argument(
        "--method",
        choices=("platt", "isotonic"),
        default="platt",
        help="which of the two predictions show; both are fitted and judged; default: platt",
    )
    command.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="draws the corruptions; default: 0"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Fit, judge, write ``calibration.json`` into the run folder, and print what it is worth."""
    from murp.prediction.calibration import METHODS
    from murp.runs import folder, load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    found = result.calibrate(method=options.method, seed=options.seed)
    if options.json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    test = found.test
    print(f"{found.words()}\ntest: {test['answers']:,} answers and as many random corruptions\n")
    kinds = ("uncalibrated", *METHODS)
    rows = [[kind, figure(test[kind]["brier"]), figure(test[kind]["log_loss"])] for kind in kinds]
    print(table(["", "Brier", "log loss"], rows, right=(1, 2)), "\n")
    bins = zip(*(test[kind]["reliability"] for kind in ("uncalibrated", found.method)), strict=True)
    lines = [
        [
            f"{a['low']:.1f} – {a['high']:.1f}",
            *(cell for b in pair for cell in (f"{b['count']:,}", figure(b["observed"]))),
        ]
        for pair in bins
        for a in pair[:1]
    ]
    print(table(["probability", "uncalibrated", "true", found.method, "true"], lines, right=(1, 2, 3, 4)))
    print("\na fact against one random corruption; among the best of many candidates fewer are true")
    print(f"saved in {result.path / folder.CALIBRATION}")


def note(result: Run) -> str | None:
    """Where calibrated probabilities come from; a calibration of other weights is mentioned on standard error."""
    from murp.runs import folder

    path = result.path / folder.CALIBRATION
    if result.calibration is not None:
        return f"calibrated: {result.calibration.words()} ({path})"
    if path.exists():
        print(f"murp: {path} is of other weights and not used. Run `murp calibrate {result.path}`.", file=sys.stderr)
    return None
