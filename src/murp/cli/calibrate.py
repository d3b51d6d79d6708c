"""``murp calibrate``: probabilities that mean what they say of the answers shown."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run, figure, table, whole
from murp.commands import command

if TYPE_CHECKING:
    from murp.runs import Run

FEW = 100  # answers: fewer leave a probability too uncertain to go without a word


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("calibrate", help="calibrate probabilities on valid, judge them on test, keep them")
    add_run(command)
    command.add_argument(
        "--method",
        choices=("platt", "isotonic"),
        default="platt",
        help="which of the two predictions show; both are fitted and judged. platt needs few facts, isotonic is truer "
        "where valid has many hundreds; default: platt",
    )
    command.add_argument(
        "--seed",
        type=whole(least=0),
        default=0,
        metavar="N",
        help="draws candidates far down and, of very many questions, a part; default: 0",
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Fit, judge, write ``calibration.json`` into the run folder, and print what it is worth."""
    with uncollected():
        from murp.prediction.calibration import CONDITION, SHOWN
        from murp.runs import folder, load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    found = result.calibrate(method=options.method, seed=options.seed)
    if found.fitted_on["answers"] < FEW:
        print(
            f"murp: fitted on {found.fitted_on['answers']} answers only: take the probabilities as rough.",
            file=sys.stderr,
        )
    if options.json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    shown, every = found.test["shown"], found.test["all"]
    print(f"{found.words()}\n")
    print(f"test, the {SHOWN} best new answers to each question: {_counted(shown, 1)}\n")
    print(f"{_worth(shown, 3)}\n")
    kinds = ("uncalibrated", found.method)
    bins = zip(*(shown[kind]["reliability"] for kind in kinds), strict=True)
    lines = [
        [
            f"{pair[0]['low']:g} – {pair[0]['high']:g}",
            *(cell for b in pair for cell in (f"{b['count']:,}", figure(b["observed"]))),
        ]
        for pair in bins
    ]
    header = ["probability", *(cell for kind in kinds for cell in (kind, f"true ({kind})"))]
    print(f"{table(header, lines, right=(1, 2, 3, 4))}\n")
    print(f"test, all candidates: {_counted(every, 4)}\n")
    print(f"{_worth(every, 6)}\n")
    print(CONDITION)
    print(f"saved in {result.path / folder.CALIBRATION}")


def _counted(part: dict[str, Any], digits: int) -> str:
    share = part["answers"] / part["candidates"]
    return f"{part['candidates']:,}, of which {part['answers']:,} ({share:.{digits}%}) are true"


def _worth(part: dict[str, Any], digits: int) -> str:
    from murp.prediction.calibration import METHODS

    measures = ("mean", "brier", "log_loss")
    rows = [[kind, *(figure(part[kind][name], digits) for name in measures)] for kind in ("uncalibrated", *METHODS)]
    return table(["", "mean", "Brier", "log loss"], rows, right=(1, 2, 3))


def note(result: Run) -> str | None:
    """Where calibrated probabilities come from; a calibration of other weights is mentioned on standard error."""
    from murp.prediction.calibration import CONDITION
    from murp.runs import folder

    path = result.path / folder.CALIBRATION
    if result.calibration is not None:
        return f"calibrated: {result.calibration.words()} ({path})\n{CONDITION}"
    if path.exists():
        print(
            f"murp: {path} is of other weights and not used. Run `{command('calibrate', result.path)}`.",
            file=sys.stderr,
        )
    return None
