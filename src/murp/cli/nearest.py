"""``murp nearest``: the entities nearest to one of them."""

from __future__ import annotations

import argparse
import dataclasses
import json

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run, figure, table, whole


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("nearest", help="the entities nearest to one, by distance in the geometry")
    add_run(command)
    command.add_argument("entity", metavar="X", help="id or name")
    command.add_argument("-k", type=whole(least=1), default=10, metavar="N", help="how many; default: 10")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Search and print one table, or one JSON object."""
    with uncollected():
        from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    found = result.nearest(options.entity, options.k)
    if options.json:
        neighbours = [dataclasses.asdict(n) for n in found]
        print(json.dumps({"entity": options.entity, "neighbours": neighbours}, ensure_ascii=False))
        return
    rows = [[n.rank, n.name, n.id, figure(n.distance)] for n in found]
    print(table(["", "name", "id", f"{result.model.geometry.name} distance"], rows, right=(0, 3)))
