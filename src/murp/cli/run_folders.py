"""``murp info``, ``export`` and ``import``: what a run folder holds, written for other programs, and read back."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from murp.cli.text import Commands, add_run, fast_imports, open_run
from murp.commands import command
from murp.export_formats import FORMATS, WHOLE


def add_info(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("info", help="settings, graph, progress and environment of a run")
    command.add_argument("path", metavar="RUN", help="run folder that `murp train` made")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run_info)


def run_info(options: argparse.Namespace) -> None:
    """Read the folder and print what it says."""
    with fast_imports():
        from murp.runs.info import info

    found = info(Path(options.path))
    print(json.dumps(found.to_dict()) if options.json else found)


def add_export(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("export", help="vectors, names, geometry, relations and biases for other programs")
    add_run(command)
    command.add_argument(
        "--to",
        required=True,
        choices=tuple(FORMATS),
        help="; ".join(f"{to}: {form.words}" for to, form in FORMATS.items()),
    )
    command.add_argument("--out", metavar="PATH", required=True, help="file or folder to make; it must not exist")
    command.add_argument(
        "--coordinates",
        choices=("poincare", "lorentz", "tangent"),
        help="coordinates of a hyperbolic model: ball, hyperboloid, or tangent space at the origin; default: poincare",
    )
    command.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> None:
    """Export and say what was written."""
    form = FORMATS[options.to]
    result = open_run(options)
    result.export(options.out, options.to, coordinates=options.coordinates)
    print(f"wrote {options.out}: {form.words}")
    if form.read is not None:
        data = [] if form.brings_graph else ["--data", "DATA"]
        print(f"back: {command('import', Path(options.out), '--out', 'RUN', *data)}")


def add_import(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("import", help="make a run from what `murp export` wrote")
    command.add_argument("path", metavar="PATH", help=f"an export in one of the formats {', '.join(WHOLE)}")
    command.add_argument("--out", metavar="RUN", required=True, help="run folder to make; it must not exist")
    command.add_argument(
        "--data", metavar="DATA", help="the graph that the run was trained on; not needed for a hub-folder"
    )
    command.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> None:
    """Import and say what can be done with it."""
    with fast_imports():
        from murp.api.training import import_run

    result = import_run(options.path, options.out, data=options.data)
    what = f"{result.config.model} d={result.config.dim} on {result.graph.name}"
    print(f"imported {what} into {result.path}\nnext: {command('evaluate', result.path)}")
