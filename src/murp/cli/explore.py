"""``murp explore``: a run, or two side by side, in the browser."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from murp.cli.imports import uncollected
from murp.cli.text import Commands, whole
from murp.display import show


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("explore", help="a run in the browser: the disk, search, predictions, figures")
    command.add_argument("path", metavar="RUN", help="run folder that `murp train` made")
    command.add_argument("second", metavar="RUN2", nargs="?", help="a second run on the same graph, side by side")
    command.add_argument(
        "--checkpoint", choices=("best", "last"), help="weights of the best validation, or the newest; default: best"
    )
    command.add_argument("--port", type=whole(least=0), default=8000, metavar="N", help="default: 8000; 0: a free one")
    command.add_argument("--host", default="127.0.0.1", help="address to bind to; default: 127.0.0.1, this machine")
    command.add_argument(
        "--export", metavar="FILE", help="write one self-contained page with the disk and the search instead"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Serve until Ctrl-C, or write the page and say where it is."""
    with uncollected():
        import torch

        from murp.errors import MurpError
        from murp.runs import load

    # Answers take a millisecond: threads would cost more than they bring.
    torch.set_num_threads(1)
    if options.port > 65535:
        raise MurpError(f"--port {options.port}: ports end at 65535.")
    paths = [path for path in (options.path, options.second) if path is not None]
    if options.export is not None:
        from murp.explorer.export import write_page

        if len(paths) > 1:
            raise MurpError("--export writes the page of one run: give one run folder.")
        page = Path(options.export)
        write_page(load(options.path, checkpoint=options.checkpoint, device="cpu"), page)
        print(f"page: {page}")
        return

    from murp.explorer.collection import Collection
    from murp.explorer.server import address_of, bind, serve, warning

    bound = bind(options.host, options.port)
    collection = Collection([load(path, checkpoint=options.checkpoint, device="cpu") for path in paths])
    if (told := warning(options.host)) is not None:
        print(f"murp: {told}", file=sys.stderr)
    # Whoever asked for a server gets one, be the address read or not.
    show(f"explorer: {address_of(bound)}  (Ctrl-C ends it)", sys.stdout)
    serve(collection, bound, options.host)
