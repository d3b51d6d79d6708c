"""``murp evaluate``: filtered ranking of a run on one split."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run, figure, table, whole

if TYPE_CHECKING:
    from murp.evaluation import Metrics


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("evaluate", help="filtered MRR, mean rank and Hits@k of a run")
    add_run(command)
    command.add_argument("--split", choices=("test", "valid", "train"), default="test", help="default: test")
    command.add_argument(
        "--protocol",
        choices=("standard", "paper"),
        default="standard",
        help="paper: the subject itself is removed from its ranking, as the authors' code does; default: standard",
    )
    command.add_argument("--by-relation", action="store_true", help="also a row for every relation")
    command.add_argument(
        "--memory", type=whole(least=1), metavar="MIB", help="bound on the memory of the scores, in MiB"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Evaluate and print one table, or one JSON object."""
    with uncollected():
        from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    memory = None if options.memory is None else options.memory * 2**20
    report = result.evaluate(options.split, options.protocol, memory=memory)
    if options.json:
        print(json.dumps(report.to_dict(by_relation=options.by_relation)))
        return

    def row(name: str, metrics: Metrics) -> list[str]:
        hits = [figure(metrics.hits[k]) for k in (1, 3, 10)]
        return [name, figure(metrics.mrr), figure(metrics.mr, 0), *hits, f"{metrics.queries:,}"]

    print(f"{result.config.model} d={result.config.dim} on {result.graph.name}, epoch {result.state['epoch']}")
    print(f"split {report.split}, protocol {report.protocol}, filtered\n")
    rows = [row("all", report.overall)]
    rows += [row(f"{name}s asked for", part) for name, part in report.by_direction.items()]
    rows += [row(f"entities {name} in train", part) for name, part in report.by_seen.items()]
    if options.by_relation:
        rows += [row(name, part) for name, part in sorted(report.by_relation.items())]
    print(table(["", "MRR", "MR", "H@1", "H@3", "H@10", "queries"], rows, right=range(1, 7)))
