"""``murp extend``: new entities and relations in a trained run."""

from __future__ import annotations

import argparse
import json
import time

from murp import display
from murp.cli.text import Commands, add_run, fast_imports, open_run, whole
from murp.commands import command as printed


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("extend", help="add new entities and relations to a run; all others stay fixed")
    add_run(command)
    command.add_argument(
        "--facts",
        metavar="FILE",
        required=True,
        help="facts about the new entities and relations, in any format for datasets",
    )
    command.add_argument("--out", metavar="RUN2", help="run folder to make; default: RUN-extended")
    command.add_argument(
        "--new",
        choices=("all", "entities", "relations"),
        default="all",
        help="what may be new; any other unknown name is an error; default: all",
    )
    command.add_argument(
        "--epochs",
        type=whole(least=1),
        metavar="N",
        help="passes over the new facts; default: depends on the optimizer",
    )
    command.add_argument("--seed", type=whole(least=0), default=0, metavar="N", help="default: 0")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.add_argument("--quiet", action="store_true", help="print only warnings and errors to standard error")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Extend and say what was made."""
    with fast_imports():
        from murp.graph.names.vocabulary import counted

    if options.quiet:
        display.be_quiet()
    result = open_run(options)
    began = time.monotonic()
    made = result.extend(options.facts, options.out, new=options.new, epochs=options.epochs, seed=options.seed)
    before, after = result.graph, made.graph
    added = {
        "entities": after.num_entities - before.num_entities,
        "relations": after.num_relations - before.num_relations,
        "facts": len(after.train) - len(before.train),
    }
    if options.json:
        print(json.dumps({"run": str(made.path), **added, "seconds": round(time.monotonic() - began, 3)}))
        return
    kept = counted({"entities": before.num_entities, "relations": before.num_relations}).replace(", ", " and ")
    print(f"placed {counted(added)}; {kept} unchanged")
    print(f"saved in {made.path}\nnext: {printed('info', made.path)}")
