"""The arguments of commands that read a dataset."""

from __future__ import annotations

import argparse
from pathlib import Path

from murp.cli.text import whole


def add_source(command: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """DATA, where to look for it, and how a single file is split."""
    command.add_argument(
        "source",
        metavar="DATA",
        nargs="?" if optional else None,
        help="dataset name, folder with train, valid and test, or one file",
    )
    command.add_argument("--data-dir", metavar="DIR", help="where to look for named datasets first")
    command.add_argument(
        "--split-seed",
        type=whole(least=0),
        default=0,
        metavar="N",
        help="draws the splits of a single file; default: 0",
    )


def data_dir(options: argparse.Namespace) -> Path | None:
    """The folder given by ``--data-dir``."""
    return None if options.data_dir is None else Path(options.data_dir)
