"""``murp paper``: the paper's tables and figures, run and reported."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from murp.cli.text import Commands, fast_imports, table, whole
from murp.display import show


def add(commands: Commands) -> None:
    """Declare the command and its three verbs."""
    verbs = commands.add_parser("paper", help="the paper's tables and figures: list, run, report").add_subparsers(
        title="verbs", metavar="VERB", required=True
    )
    verb = verbs.add_parser("list", help="the items, and which of them are stored")
    _add_out(verb)
    verb.set_defaults(run=run_list)

    verb = verbs.add_parser("run", help="run an item's experiments; what is stored already is not repeated")
    verb.add_argument("items", metavar="ITEM", nargs="+", help="names from `murp paper list`, or all")
    _add_out(verb)
    verb.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto", help="default: auto")
    verb.add_argument("--seeds", type=whole(least=1), default=3, metavar="N", help="runs of each cell; default: 3")
    again = "run what is stored already, too; runs that were trained with other settings are trained anew"
    verb.add_argument("--again", action="store_true", help=again)
    verb.add_argument("--quick", action="store_true", help="a toy of it on the bundled graph, within a minute")
    verb.set_defaults(run=run_items)

    verb = verbs.add_parser("report", help="Markdown, an HTML page and figures from what is stored")
    _add_out(verb)
    verb.add_argument("--to", metavar="FOLDER", default="docs", help="where to write reproduction.md; default: docs")
    verb.set_defaults(run=run_report)


def _add_out(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--out", metavar="FOLDER", default="results/paper", help="stored results; default: results/paper")


def run_list(options: argparse.Namespace) -> None:
    """Every item with what it is."""
    with fast_imports():
        from murp.paper import ITEMS
        from murp.paper.experiments import stored

    out = Path(options.out)
    rows = []
    for name, item in ITEMS.items():
        found = stored(out, name)
        state = "–" if found is None else f"{found['date'][:10]}{' (quick)' if found['quick'] else ''}"
        rows.append([name, state, (item.__doc__ or "").splitlines()[0]])
    print(table(["item", "stored", "what"], rows))


def run_items(options: argparse.Namespace) -> None:
    """Run the items in the paper's order."""
    with fast_imports():
        from murp.errors import ConfigError
        from murp.paper import ITEMS, Experiments
        from murp.paper.done import is_done
        from murp.paper.experiments import stored
        from murp.training.progress import usual

    unknown = [name for name in options.items if name not in (*ITEMS, "all")]
    if unknown:
        raise ConfigError(f"unknown item {unknown[0]!r}: choose from {', '.join(ITEMS)}, or all.")
    out = Path(options.out)
    for name in ITEMS:
        found = stored(out, name)
        if found is not None and found["quick"] != options.quick:
            kind = "quick toys" if found["quick"] else "real results"
            raise ConfigError(f"{out} holds {kind}: keep the two kinds apart, choose another --out.")
    experiments = Experiments(
        out,
        device=options.device,
        seeds=options.seeds,
        quick=options.quick,
        again=options.again,
        progress=usual(),
        say=_say,
    )
    try:
        for name, item in ITEMS.items():
            if name not in options.items and "all" not in options.items:
                continue
            if not options.again and is_done(experiments, name):
                _say(f"{name}: stored already in {out / name}.json; --again runs it again")
            else:
                item(experiments)
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt("stopped; what is done is kept. Give the same command to go on.") from stop


def _say(line: str) -> None:
    """Experiments go on, be it read or not."""
    show(line, sys.stdout)


def run_report(options: argparse.Namespace) -> None:
    """Write the report and say where it is."""
    with fast_imports():
        from murp.paper.report import code_warnings, write

    for line in code_warnings(Path(options.out)):
        print(f"warning: {line}" if not line.startswith(" ") else line, file=sys.stderr)
    for path in write(Path(options.out), Path(options.to)):
        print(path)
