"""``murp evaluate``, ``calibrate`` and ``classify``: how good a run is, and what its probabilities are worth."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murp.cli.text import Commands, add_run, fast_imports, figure, table, whole
from murp.commands import command

if TYPE_CHECKING:
    from murp.api.run import Run
    from murp.evaluation import Metrics
    from murp.prediction.classification import Thresholds

FEW = 100  # answers: fewer leave a probability too uncertain to go without a word


def add_evaluate(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("evaluate", help="filtered MRR, mean rank and Hits@k of a run")
    add_run(command)
    command.add_argument("--split", choices=("test", "valid", "train"), default="test", help="default: test")
    command.add_argument(
        "--protocol",
        choices=("standard", "paper"),
        default="standard",
        help="paper: the entity asked about is removed from the ranking, as the authors' code does; default: standard",
    )
    command.add_argument("--by-relation", action="store_true", help="also a row for every relation")
    command.add_argument(
        "--memory", type=whole(least=1), metavar="MIB", help="bound on the memory of the scores, in MiB"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run_evaluate)


def run_evaluate(options: argparse.Namespace) -> None:
    """Evaluate and print one table, or one JSON object."""
    with fast_imports():
        from murp.api.training import load

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


def add_calibrate(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("calibrate", help="calibrate probabilities on valid, judge them on test, keep them")
    add_run(command)
    command.add_argument(
        "--method",
        choices=("platt", "isotonic"),
        default="platt",
        help="which of the two predictions show; both are fitted and judged. platt needs few facts, isotonic is truer "
        "where valid has many hundreds; default: platt",
    )
    command.add_argument(
        "--seed",
        type=whole(least=0),
        default=0,
        metavar="N",
        help="draws candidates far down and, of very many questions, a part; default: 0",
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run_calibrate)


def run_calibrate(options: argparse.Namespace) -> None:
    """Fit, judge, write ``calibration.json`` into the run folder, and print what it is worth."""
    with fast_imports():
        from murp.api.training import load
        from murp.prediction.calibration import CONDITION, SHOWN
        from murp.runs import folder

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    found = result.calibrate(method=options.method, seed=options.seed)
    if found.fitted_on["answers"] < FEW:
        print(
            f"murp: fitted on {found.fitted_on['answers']} answers only: take the probabilities as rough.",
            file=sys.stderr,
        )
    if options.json:
        print(json.dumps(dataclasses.asdict(found)))
        return
    shown, every = found.test["shown"], found.test["all"]
    print(f"{found.words()}\n")
    print(f"test, the {SHOWN} best new answers to each question: {_counted(shown, 1)}\n")
    print(f"{_worth(shown, 3)}\n")
    kinds = ("uncalibrated", found.method)
    bins = zip(*(shown[kind]["reliability"] for kind in kinds), strict=True)
    lines = [
        [
            f"{pair[0]['low']:g} – {pair[0]['high']:g}",
            *(cell for b in pair for cell in (f"{b['count']:,}", figure(b["observed"]))),
        ]
        for pair in bins
    ]
    header = ["probability", *(cell for kind in kinds for cell in (kind, f"true ({kind})"))]
    print(f"{table(header, lines, right=(1, 2, 3, 4))}\n")
    print(f"test, all candidates: {_counted(every, 4)}\n")
    print(f"{_worth(every, 6)}\n")
    print(CONDITION)
    print(f"saved in {result.path / folder.CALIBRATION}")


def _counted(part: dict[str, Any], digits: int) -> str:
    share = part["answers"] / part["candidates"]
    return f"{part['candidates']:,}, of which {part['answers']:,} ({share:.{digits}%}) are true"


def _worth(part: dict[str, Any], digits: int) -> str:
    from murp.prediction.calibration import METHODS

    measures = ("mean", "brier", "log_loss")
    rows = [[kind, *(figure(part[kind][name], digits) for name in measures)] for kind in ("uncalibrated", *METHODS)]
    return table(["", "mean", "Brier", "log loss"], rows, right=(1, 2, 3))


def note(result: Run) -> str | None:
    """Where calibrated probabilities come from; a calibration of other weights is mentioned on standard error."""
    from murp.prediction.calibration import CONDITION
    from murp.runs import folder

    path = result.path / folder.CALIBRATION
    if result.calibration is not None:
        return f"calibrated: {result.calibration.words()} ({path})\n{CONDITION}"
    if path.exists():
        print(
            f"murp: {path} is of other weights and not used. Run `{command('calibrate', result.path)}`.",
            file=sys.stderr,
        )
    return None


def add_classify(commands: Commands) -> None:
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
    command.set_defaults(run=run_classify)


def run_classify(options: argparse.Namespace) -> None:
    """Choose thresholds on valid; print the accuracy on test, or the verdict on each triple of a file."""
    with fast_imports():
        from murp.api.training import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    found = result.classify(seed=options.seed)
    if options.triples is not None:
        _verdicts(options, result, found.thresholds)
        return
    if options.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
        return
    print(f"split test, {found.protocol}\n")
    rows = [["all", figure(found.test.share), f"{found.test.triples:,}", ""]]
    rows += [
        [found.relations[r], figure(part.share), f"{part.triples:,}", figure(found.thresholds.by_relation.get(r))]
        for r, part in found.by_relation.items()
    ]
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
