"""``murp predict``: the most probable tails or heads of a question."""

from __future__ import annotations

import argparse
import dataclasses
import json

from murp.cli.text import Commands, add_run, figure, table, whole


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("predict", help="the most probable tails of a head, or heads of a tail")
    add_run(command)
    given = command.add_mutually_exclusive_group(required=True)
    given.add_argument("--head", metavar="X", help="id or name; predict tails")
    given.add_argument("--tail", metavar="X", help="id or name; predict heads")
    command.add_argument("--relation", metavar="R", required=True, help="id or name of the relation")
    command.add_argument("-k", type=whole(least=1), default=10, metavar="N", help="how many; default: 10")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Predict and print one table, or one JSON object."""
    from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    answers = result.predict(relation=options.relation, head=options.head, tail=options.tail, k=options.k)
    if options.json:
        query = {"head": options.head, "relation": options.relation, "tail": options.tail}
        print(json.dumps({**query, "predictions": [dataclasses.asdict(a) for a in answers]}, ensure_ascii=False))
        return
    print(f"({options.head or '?'}, {options.relation}, {options.tail or '?'})\n")
    rows = [
        [a.rank, a.name, a.id, figure(a.probability), "new" if a.known is None else f"known ({a.known})"]
        for a in answers
    ]
    print(table(["", "name", "id", "probability", ""], rows, right=(0, 3)))
