"""``murp evaluate``, ``calibrate`` and ``classify``: how good a run and its probabilities are."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murp.cli.text import (
    Commands,
    add_output,
    add_run,
    fast_imports,
    figure,
    join_ranks,
    open_run,
    print_table,
    table,
    whole,
)
from murp.commands import command
from murp.errors import ConfigError
from murp.tables import Number

if TYPE_CHECKING:
    from murp.api.run import Run
    from murp.distributed.ranks import Ranks
    from murp.evaluation import Metrics, Report
    from murp.prediction.classification import Thresholds

COLUMNS = ["MRR", "MR", "H@1", "H@3", "H@10", "queries"]
NOT_STANDARD = "Ranks among drawn candidates are lower than among all entities: do not compare with other protocols."
FEW = 100  # answers: fewer leave a probability too uncertain to go without a word


def add_evaluate(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("evaluate", help="filtered MRR, mean rank and Hits@k of a run, or of several")
    add_run(command, several=True)
    add_ranking(command, sampled=True)
    command.add_argument(
        "--candidates",
        type=whole(least=1),
        metavar="N",
        help="with --protocol sampled: number of candidates for each question",
    )
    command.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="seed of the candidates; default: 0"
    )
    command.add_argument(
        "--by-relation",
        action="store_true",
        help="also print a row for every relation; for several runs with their MRR",
    )
    add_output(command)
    command.set_defaults(run=run_evaluate)


def add_ranking(command: argparse.ArgumentParser, *, sampled: bool = False) -> None:
    """Options for ranking; ``sampled``: also offer protocol ``sampled``."""
    command.add_argument("--split", choices=("test", "valid", "train"), default="test", help="default: test")
    command.add_argument(
        "--protocol",
        choices=("standard", "paper", "types", *(("sampled",) if sampled else ())),
        default="standard",
        help="paper: the entity of the question is removed from the ranking, as in the authors' code; types: answers "
        "of the wrong type, learned from train, are ranked after all others; "
        + ("sampled: each answer is ranked among --candidates, not among all entities; " if sampled else "")
        + "default: standard",
    )
    command.add_argument(
        "--memory", type=whole(least=1), metavar="MIB", help="limit for the memory of the scores, in MiB"
    )


def memory(options: argparse.Namespace) -> int | None:
    """The bound in bytes that ``--memory`` gives."""
    return None if options.memory is None else options.memory * 2**20


def run_evaluate(options: argparse.Namespace) -> None:
    """Evaluate and print one table, or one JSON object."""
    with fast_imports():
        from murp.api.training import load

    ranks = join_ranks("evaluate", options)
    if ranks.size > 1:
        runs, reports = _evaluated_by(ranks, options)
    else:
        runs = [load(path, checkpoint=options.checkpoint, device=options.device) for path in options.path]
        if len(runs) > 1:
            _warn_of_other_facts(runs, options)
        drawn = {"candidates": options.candidates, "seed": options.seed}
        reports = [run.evaluate(options.split, options.protocol, **drawn, memory=memory(options)) for run in runs]
    if options.json:
        found = [report.to_dict(by_relation=options.by_relation) for report in reports]
        named = [{"run": path, **figures} for path, figures in zip(options.path, found, strict=True)]
        print(json.dumps(found[0] if len(runs) == 1 else {"runs": named}))
    elif len(runs) == 1:
        _print_one(options, runs[0], reports[0])
    else:
        _print_several(options, runs, reports)


def _evaluated_by(ranks: Ranks, options: argparse.Namespace) -> tuple[list[Run], list[Report]]:
    """Evaluate on all ranks, each with its own rows; torchrun evaluates one run."""
    from murp.api.run import Run
    from murp.training.sharded import evaluated

    with ranks.together():
        if len(options.path) > 1:
            raise ConfigError("torchrun evaluates one run at a time. Name one, or evaluate several without torchrun.")
    path = Path(options.path[0])
    chosen = (options.split, options.protocol, options.checkpoint, options.device)
    run, report = evaluated(path, ranks, *chosen, options.candidates, options.seed, memory(options))
    return [Run.of(run)], [report]


def _print_one(options: argparse.Namespace, run: Run, report: Report) -> None:
    rows: list[list[object]] = [["all", *_cells(report.overall)]]
    rows += [[f"{name}s asked for", *_cells(part)] for name, part in report.by_direction.items()]
    rows += [[f"entities {name} in train", *_cells(part)] for name, part in report.by_seen.items()]
    if options.by_relation:
        rows += [[name, *_cells(part)] for name, part in sorted(report.by_relation.items())]
    if options.format == "text":
        print(described(run))
        print(f"split {report.split}, protocol {report.overall.protocol}, filtered\n")
    print_table(options, ["", *COLUMNS], rows, right=range(1, 7), about=about(options, report))
    if options.format == "text" and report.intervals:
        print(f"\n95 % intervals: {_intervals(report)}\n{NOT_STANDARD}")


def _print_several(options: argparse.Namespace, runs: Sequence[Run], reports: Sequence[Report]) -> None:
    """A row for each run; by relation, a column for each."""
    if options.format == "text":
        print(f"split {options.split}, protocol {reports[0].overall.protocol}, filtered\n")
    if not options.by_relation:
        rows: list[list[object]] = [
            [path, run.config.model, run.config.dim, run.graph.name, *_cells(report.overall)]
            for path, run, report in zip(options.path, runs, reports, strict=True)
        ]
        print_table(
            options,
            ["run", "model", "d", "data", *COLUMNS],
            rows,
            right=(2, *range(4, 10)),
            about=about(options, reports[0]),
        )
        return
    names = sorted({name for report in reports for name in report.by_relation})
    found: list[tuple[str, list[Metrics | None]]] = [("all", [report.overall for report in reports])]
    found += [(name, [report.by_relation.get(name) for report in reports]) for name in names]
    rows = [
        [
            name,
            *(Number(None if part is None else part.mrr) for part in parts),
            Number(next(part.queries for part in parts if part)),
        ]
        for name, parts in found
    ]
    header = ["MRR of", *options.path, "queries"]
    print_table(options, header, rows, right=range(1, len(header)), about=about(options, reports[0]))


def _warn_of_other_facts(runs: Sequence[Run], options: argparse.Namespace) -> None:
    from murp.errors import DataError
    from murp.runs.comparing import comparable

    for path, run in list(zip(options.path, runs, strict=True))[1:]:
        try:
            comparable(runs[0].graph, run.graph, options.split)
        except DataError as error:
            if options.protocol == "sampled":
                raise DataError(f"{options.path[0]} and {path}: {error} Evaluate them one by one.") from None
            print(f"murp: {options.path[0]} and {path}: {error}", file=sys.stderr)


def described(run: Run) -> str:
    """What a run is, in a few words."""
    return f"{run.config.model} d={run.config.dim} on {run.graph.name}, epoch {run.state['epoch']}"


def about(options: argparse.Namespace, report: Report | None = None) -> dict[str, str]:
    """Split and protocol of metrics, with the number of candidates if they were sampled."""
    return {"split": options.split, "protocol": options.protocol if report is None else report.overall.protocol}


def _intervals(report: Report) -> str:
    named = {"mrr": "MRR", **{f"hits@{k}": f"H@{k}" for k in (1, 3, 10)}}
    return ", ".join(
        f"{named[name]} " + ("–" if between is None else f"{between[0]:.3f} to {between[1]:.3f}")
        for name, between in report.intervals.items()
    )


def _cells(metrics: Metrics) -> list[Number]:
    hits = [Number(metrics.hits[k]) for k in (1, 3, 10)]
    return [Number(metrics.mrr), Number(metrics.mr, 0), *hits, Number(metrics.queries)]


def add_calibrate(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("calibrate", help="calibrate probabilities on valid, check them on test, store them")
    add_run(command)
    command.add_argument(
        "--method",
        choices=("platt", "isotonic"),
        default="platt",
        help="the method that predictions show; both are fitted and checked. platt needs few facts, isotonic is more "
        "accurate if valid has many hundreds; default: platt",
    )
    command.add_argument(
        "--seed",
        type=whole(least=0),
        default=0,
        metavar="N",
        help="seed that samples candidates with low ranks and, if there are very many, questions; default: 0",
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run_calibrate)


def run_calibrate(options: argparse.Namespace) -> None:
    """Fit and check a calibration, write ``calibration.json`` into the run folder, and print its quality."""
    with fast_imports():
        from murp.prediction.calibration import CONDITION, SHOWN
        from murp.runs import folder

    result = open_run(options)
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
    command = commands.add_parser(
        "classify", help="classify facts as true or false with thresholds chosen on valid; accuracy on test"
    )
    add_run(command)
    command.add_argument(
        "--triples",
        metavar="FILE",
        help="triples to classify: .tsv, .csv, .jsonl or .parquet with head, relation and tail",
    )
    command.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="seed of the corruptions; default: 0"
    )
    add_output(command, "one JSON object; with --triples, one per line")
    command.set_defaults(run=run_classify)


def run_classify(options: argparse.Namespace) -> None:
    """Choose thresholds on valid; print the accuracy on test, or the verdict on each triple of a file."""
    result = open_run(options)
    found = result.classify(seed=options.seed)
    if options.triples is not None:
        _verdicts(options, result, found.thresholds)
        return
    if options.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
        return
    if options.format == "text":
        print(f"split test, {found.protocol}\n")
    rows = [["all", Number(found.test.share), Number(found.test.triples), ""]]
    rows += [
        [found.relations[r], Number(part.share), Number(part.triples), Number(found.thresholds.by_relation.get(r))]
        for r, part in found.by_relation.items()
    ]
    header = ["", "accuracy", "triples", "threshold"]
    print_table(options, header, rows, right=(1, 2, 3), about={"split": "test", "protocol": found.protocol})


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
            Number(r["score"]),
            Number(r["threshold"]),
        ]
        for block in judged
        for r in block.to_pylist()
    ]
    print_table(options, ["head", "relation", "tail", "verdict", "score", "threshold"], rows, right=(4, 5))
