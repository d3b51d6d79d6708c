"""``murp classify``: triples true or false, by thresholds chosen on valid."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run, figure, table, whole

if TYPE_CHECKING:
    from murp.prediction.classification import Thresholds
    from murp.runs import Run


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("classify", help="true or false by thresholds chosen on valid; accuracy on test")
    add_run(command)
    command.add_argument(
        "--triples", metavar="FILE", help="judge these: .tsv, .csv, .jsonl or .parquet of head, relation and tail"
    )
    command.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="draws the corruptions; default: 0"
    )
    command.add_argument("--json", action="store_true", help="one JSON object, or one a line for --triples")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Choose thresholds on valid; print the accuracy on test, or the verdict on each triple of a file."""
    with uncollected():
        from murp.prediction import classify
        from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    graph = result.graph
    found = classify(result.model, graph, seed=options.seed)
    if options.triples is not None:
        _verdicts(options, result, found.thresholds)
        return
    parts = {
        graph.relations.id(r): (found.thresholds.by_relation.get(r), part) for r, part in found.by_relation.items()
    }
    protocol = f"one corruption a fact, of head or tail, seed {options.seed}; thresholds chosen on valid"
    if options.json:
        report = {
            "split": "test",
            "protocol": protocol,
            "accuracy": found.test.share,
            "triples": found.test.triples,
            "threshold": found.thresholds.overall,
            "by_relation": {
                name: {"accuracy": part.share, "triples": part.triples, "threshold": threshold}
                for name, (threshold, part) in parts.items()
            },
        }
        print(json.dumps(report, ensure_ascii=False))
        return
    print(f"split test, {protocol}\n")
    rows = [["all", figure(found.test.share), f"{found.test.triples:,}", ""]]
    rows += [[name, figure(p.share), f"{p.triples:,}", figure(t)] for name, (t, p) in parts.items()]
    print(table(["", "accuracy", "triples", "threshold"], rows, right=(1, 2, 3)))


def _verdicts(options: argparse.Namespace, result: Run, thresholds: Thresholds) -> None:
    from murp.prediction.classification import verdicts
    from murp.prediction.queries import read_triples
    from murp.prediction.results import json_lines

    blocks = read_triples(Path(options.triples), result.graph)
    judged = (verdicts(result.model, result.graph, triples, thresholds) for triples in blocks)
    if options.json:
        for block in judged:
            print(json_lines(block).decode(), end="")
        return
    rows = [
        [
            r["head"],
            r["relation"],
            r["tail"],
            "true" if r["true"] else "false",
            figure(r["score"]),
            figure(r["threshold"]),
        ]
        for block in judged
        for r in block.to_pylist()
    ]
    print(table(["head", "relation", "tail", "verdict", "score", "threshold"], rows, right=(4, 5)))
