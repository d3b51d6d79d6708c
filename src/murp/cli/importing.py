"""``murp import``: an export back into a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path

from murp.cli.imports import uncollected
from murp.cli.text import Commands
from murp.commands import command


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("import", help="make a run of what `murp export` wrote")
    command.add_argument("path", metavar="PATH", help="an npz, parquet, safetensors or hub-folder export")
    command.add_argument("--out", metavar="RUN", required=True, help="run folder to make; it must not exist")
    command.add_argument("--data", metavar="DATA", help="the graph it was trained on; a hub-folder brings its own")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Import and say what can be done with it."""
    with uncollected():
        from murp.exchange import import_run

    result = import_run(Path(options.path), Path(options.out), options.data)
    what = f"{result.config.model} d={result.config.dim} on {result.graph.name}"
    print(f"imported {what} into {result.path}\nnext: {command('evaluate', result.path)}")
