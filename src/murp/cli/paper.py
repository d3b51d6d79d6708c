"""``murp paper``: the paper's tables and figures, run and reported."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from murp.cli.text import Commands, fast_imports, table, whole
from murp.display import show


def add(commands: Commands) -> None:
    """Declare the command and its verbs."""
    verbs = commands.add_parser(
        "paper", help="the paper's tables and figures: list, run, config, report"
    ).add_subparsers(title="verbs", metavar="VERB", required=True)
    verb = verbs.add_parser("list", help="the items, and which of them are stored")
    _add_out(verb)
    verb.set_defaults(run=run_list)

    verb = verbs.add_parser("run", help="run an item's experiments, except those that are stored already")
    verb.add_argument("items", metavar="ITEM", nargs="+", help="names from `murp paper list`, or all")
    _add_out(verb)
    verb.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")
    verb.add_argument("--seeds", type=whole(least=1), default=3, metavar="N", help="runs for each cell; default: 3")
    again = "also run what is stored already; train runs again that have other settings"
    verb.add_argument("--again", action="store_true", help=again)
    verb.add_argument("--quick", action="store_true", help="a small version on the bundled graph, within a minute")
    verb.add_argument(
        "--only", metavar="DATA/MODEL/DIM", help="only one cell of the item; prints its plan and time first"
    )
    verb.set_defaults(run=run_items)

    verb = verbs.add_parser("config", help="the settings of a stored run, for `murp train --config`")
    verb.add_argument("name", metavar="RUN", help="name of a stored run: WN18RR-murp-d40-lr50-seed0")
    _add_out(verb)
    verb.set_defaults(run=run_config)

    verb = verbs.add_parser("report", help="write Markdown, an HTML page and figures from the stored results")
    _add_out(verb)
    verb.add_argument("--to", metavar="FOLDER", default="docs", help="where to write reproduction.md; default: docs")
    verb.set_defaults(run=run_report)


def _add_out(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--out", metavar="FOLDER", default="results/paper", help="stored results; default: results/paper")


def run_list(options: argparse.Namespace) -> None:
    """Every item with what it is."""
    with fast_imports():
        from murp.paper.running import items

    rows = [
        [one.item, "–" if one.date is None else f"{one.date}{' (quick)' if one.quick else ''}", one.what]
        for one in items(options.out)
    ]
    print(table(["item", "stored", "what"], rows))


def run_items(options: argparse.Namespace) -> None:
    """Run the items in the paper's order."""
    with fast_imports():
        from murp.paper.running import run

    run(
        options.items,
        options.out,
        device=options.device,
        seeds=options.seeds,
        again=options.again,
        quick=options.quick,
        only=options.only,
        say=_say,
    )


def run_config(options: argparse.Namespace) -> None:
    """Print the settings as a TOML file."""
    with fast_imports():
        from murp.paper.running import config

    print(config(options.name, options.out).to_toml(), end="")


def _say(line: str) -> None:
    """Print a message; experiments continue even if it cannot be written."""
    show(line, sys.stdout)


def run_report(options: argparse.Namespace) -> None:
    """Write the report and say where it is."""
    with fast_imports():
        from murp.paper.report import code_warnings, write

    for line in code_warnings(Path(options.out)):
        print(f"warning: {line}" if not line.startswith(" ") else line, file=sys.stderr)
    for path in write(Path(options.out), Path(options.to)):
        print(path)
