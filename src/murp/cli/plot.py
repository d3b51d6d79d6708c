"""``murp plot``: pictures of a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from murp.cli.text import Commands, add_run


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("plot", help="a picture of a run: the disk around one question")
    add_run(command)
    command.add_argument("kind", choices=("disk",), help="disk: a question's answers as its subject sees them")
    command.add_argument("--head", metavar="X", required=True, help="id or name of the subject at the centre")
    command.add_argument("--relation", metavar="R", required=True, help="id or name of the relation")
    command.add_argument("--out", metavar="FILE", help=".png, .svg or .pdf; default: RUN/disk.png")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Draw and say where the picture is."""
    from murp.plots.disk import draw
    from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    path = Path(options.out) if options.out else result.path / "disk.png"
    draw(result, subject=options.head, relation=options.relation, path=path)
    print(f"picture: {path}")
