"""``murp serve``: a run as a service."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from murp.cli.text import Commands, add_approximate, add_types, fast_imports, positive, whole
from murp.display import show


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser(
        "serve", help="answer questions about a run over HTTP: batches, keys, limits, metrics"
    )
    command.add_argument(
        "path", metavar="RUN", help="run folder that `murp train` made; if it is replaced, it is read again"
    )
    command.add_argument(
        "--port", type=whole(least=0), default=8000, metavar="N", help="default: 8000; 0: any free port"
    )
    command.add_argument("--host", default="127.0.0.1", help="address to bind to; default: 127.0.0.1, this machine")
    command.add_argument("--keys", metavar="FILE", help="API keys, one per line; default: no key is needed")
    command.add_argument(
        "--rate",
        type=positive(zero=True),
        default=0.0,
        metavar="X",
        help="questions per second for one client; 0: no limit",
    )
    command.add_argument(
        "--most-questions",
        type=whole(least=1),
        default=1000,
        metavar="N",
        help="questions in one request; default: 1000",
    )
    command.add_argument(
        "--most-bytes", type=whole(least=1), default=4 * 2**20, metavar="N", help="bytes in one request; default: 4 MiB"
    )
    command.add_argument(
        "--timeout", type=positive(), default=10.0, metavar="SECONDS", help="time for one request; default: 10"
    )
    add_types(command, "; a question may say otherwise")
    add_approximate(command)
    command.add_argument(
        "--checkpoint",
        choices=("best", "last"),
        help="weights of the best validation, or the newest weights; default: best",
    )
    command.add_argument("--device", choices=("auto", "cpu", "cuda"), default="cpu", help="default: cpu")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Serve until Ctrl-C."""
    with fast_imports():
        from murp.serving.access import read_keys
        from murp.serving.limits import Limits
        from murp.serving.server import ready, serve, warning
        from murp.web.server import address_of, bind

    keys = frozenset[bytes]() if options.keys is None else read_keys(Path(options.keys))
    limits = Limits(options.most_questions, options.most_bytes, options.timeout, options.rate)
    bound = bind(options.host, options.port)
    current, server = ready(
        Path(options.path),
        options.host,
        keys,
        limits,
        options.checkpoint,
        options.device,
        types=options.types,
        approximate=options.approximate,
    )
    if (told := warning(options.host, bool(keys))) is not None:
        show(f"murp: {told}", sys.stderr)
    show(f"serving: {address_of(bound)}  (how to ask: {address_of(bound)}docs; Ctrl-C ends it)", sys.stdout)
    serve(current, server, bound)
