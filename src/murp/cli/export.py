"""``murp export``: the vectors of a run, with what is needed to use them rightly."""

from __future__ import annotations

import argparse
from pathlib import Path

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run
from murp.commands import command


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("export", help="vectors with names, geometry, relations and biases, in six formats")
    add_run(command)
    command.add_argument(
        "--to",
        required=True,
        choices=("npz", "parquet", "word2vec", "safetensors", "tensorboard", "hub-folder"),
        help="npz and safetensors are one file, the others a folder; word2vec and tensorboard hold entities alone",
    )
    command.add_argument("--out", metavar="PATH", required=True, help="file or folder to make; it must not exist")
    command.add_argument(
        "--coordinates",
        choices=("poincare", "lorentz", "tangent"),
        help="of a hyperbolic model's points: ball, hyperboloid, or tangent space at the origin; default: poincare",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Export and say what was written."""
    with uncollected():
        from murp.exchange import FORMATS, export
        from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    export(result, options.to, Path(options.out), options.coordinates)
    print(f"wrote {options.out}: {FORMATS[options.to]}")
    if options.to not in ("word2vec", "tensorboard"):
        data = [] if options.to == "hub-folder" else ["--data", "DATA"]
        print(f"back: {command('import', Path(options.out), '--out', 'RUN', *data)}")
