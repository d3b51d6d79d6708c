"""``murp evaluate``, ``calibrate`` and ``classify``: how good a run and its probabilities are."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murp.cli.reports import print_report, print_reports
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
    from murp.evaluation import Report
    from murp.prediction.classification import Thresholds

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
        "--save-candidates",
        metavar="FILE",
        help="also write the questions and their candidates into this file (.parquet)",
    )
    command.add_argument(
        "--candidates-from",
        metavar="FILE",
        help="with --protocol sampled: take the candidates of such a file, in place of --candidates and --seed",
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
        if len(runs) > 1 and options.save_candidates is not None:
            raise ConfigError(
                "--save-candidates writes the candidates of one run. Name one, and evaluate the others with "
                "--candidates-from."
            )
        chosen: dict[str, Any] = {
            name: getattr(options, name) for name in ("candidates", "seed", "save_candidates", "candidates_from")
        }
        reports = [run.evaluate(options.split, options.protocol, **chosen, memory=memory(options)) for run in runs]
        _warn_of_other_candidates(options, reports)
    if options.json:
        found = [report.to_dict(by_relation=options.by_relation) for report in reports]
        named = [{"run": path, **figures} for path, figures in zip(options.path, found, strict=True)]
        print(json.dumps(found[0] if len(runs) == 1 else {"runs": named}))
    elif len(runs) == 1:
        print_report(options, runs[0], reports[0])
    else:
        print_reports(options, runs, reports)


def _evaluated_by(ranks: Ranks, options: argparse.Namespace) -> tuple[list[Run], list[Report]]:
    """Evaluate on all ranks, each with its own rows; torchrun evaluates one run."""
    from murp.api.run import Run
    from murp.training.sharded import evaluated

    with ranks.together():
        if len(options.path) > 1:
            raise ConfigError("torchrun evaluates one run at a time. Name one, or evaluate several without torchrun.")
    path = Path(options.path[0])
    chosen = (options.split, options.protocol, options.checkpoint, options.device)
    save, source = (None if of is None else Path(of) for of in (options.save_candidates, options.candidates_from))
    run, report = evaluated(path, ranks, *chosen, options.candidates, options.seed, memory(options), save, source)
    return [Run.of(run)], [report]


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


def _warn_of_other_candidates(options: argparse.Namespace, reports: Sequence[Report]) -> None:
    """A seed draws numbers: of graphs that number their entities in other orders, these are other entities."""
    for path, report in list(zip(options.path, reports, strict=True))[1:]:
        first, own = reports[0].ranks.sample, report.ranks.sample
        if first is not None and own is not None and first.digest != own.digest:
            print(
                f"murp: {options.path[0]} and {path} were ranked among other candidates, since their graphs have "
                "entities in another order. For the same ones, write those of one run with --save-candidates, and use "
                "--candidates-from.",
                file=sys.stderr,
            )


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
