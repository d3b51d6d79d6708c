"""The command line: parse, hand over to one command, say errors plainly.

A command is a module with ``add(commands)``, which declares its arguments, and a function that runs
it. Heavy imports stand inside those functions: ``murp --help`` answers at once.
"""

from __future__ import annotations

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
from murp.cli.manual import explain
from murp.cli.parser import Parser
from murp.errors import MurpError


def parser() -> Parser:
    """Every command with its options."""
    top = Parser(prog="murp")
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
    explain(top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit status: 0 done, 1 it could not be done, 2 not understood, 130 interrupted.

    Not understood is a word that is wrong by itself: an unknown command or option, a value no option takes. Options
    that do not go together, and whatever turns out only when files are looked at, could not be done.
    """
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:  # as it is where it was closed
                sys.stdout.flush()
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): no error, but nothing more may be written either.
        _drop_output()
        return 0
    except OSError as error:
        if not _output_refused():
            raise
        print(f"murp: standard output cannot be written: {error.strerror}.", file=sys.stderr)
        return 1


def _run(arguments: Sequence[str] | None) -> int:
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
    return 0


def _output_refused() -> bool:
    """Whether it is standard output that cannot be written, which is then dropped: it would refuse a line end too."""
    try:
        print(flush=True)
    except OSError:
        _drop_output()
        return True
    return False


def _drop_output() -> None:
    """The interpreter writes what is left when it ends, and would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
