"""The command line: parse, hand over to one command, say errors plainly.

A command is a module with ``add(commands)``, which declares its arguments, and a function that runs
it. Heavy imports stand inside those functions: ``murp --help`` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Sequence

import murp
from murp.cli import (
    analyze,
    calibrate,
    classify,
    data,
    discover,
    evaluate,
    explore,
    export,
    importing,
    info,
    nearest,
    paper,
    plot,
    predict,
    sweep,
    train,
)
from murp.errors import MurpError


def parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    top = argparse.ArgumentParser(
        prog="murp", description="Embed multi-relational knowledge graphs in hyperbolic space: MuRP and MuRE."
    )
    top.add_argument("--version", action="version", version=f"murp {murp.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (
        train,
        sweep,
        evaluate,
        predict,
        discover,
        calibrate,
        classify,
        nearest,
        info,
        plot,
        explore,
        analyze,
        export,
        importing,
        data,
        paper,
    ):
        command.add(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status: 0 done, 1 it could not be done, 2 not understood, 130 interrupted."""
    options = parser().parse_args(arguments)
    # A warning is for the user, who has no use for the line of code it came from.
    warnings.formatwarning = lambda message, *_: f"murp: warning: {message}\n"
    try:
        options.run(options)
    except MurpError as error:
        print(f"murp: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(f"murp: {stop}" if str(stop) else "murp: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): no error, but nothing more may be written either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return 0
