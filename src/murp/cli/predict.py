"""``murp predict``: the most probable tails or heads of a question, or of a file of questions."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run, figure, table, whole
from murp.errors import ConfigError

if TYPE_CHECKING:
    from murp.runs import Run

_QUERIES = """file of questions: .tsv, .csv, .jsonl or .parquet, a row of head and relation each; with a header
(head, relation, tail) also relation and tail, or three columns with ? for what is asked"""


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("predict", help="the most probable tails of a head, or heads of a tail")
    add_run(command)
    given = command.add_mutually_exclusive_group(required=True)
    given.add_argument("--head", metavar="X", help="id or name; predict tails")
    given.add_argument("--tail", metavar="X", help="id or name; predict heads")
    given.add_argument("--queries", metavar="FILE", help=_QUERIES)
    command.add_argument("--relation", metavar="R", help="id or name of the relation, with --head or --tail")
    command.add_argument("-k", type=whole(least=1), default=10, metavar="N", help="how many; default: 10")
    command.add_argument("--new-only", action="store_true", help="leave out facts that the graph states")
    command.add_argument("--out", metavar="FILE", help="with --queries: .parquet, .csv or .jsonl, a row an answer")
    command.add_argument("--force", action="store_true", help="replace an --out that exists")
    command.add_argument(
        "--memory", type=whole(least=1), metavar="MIB", help="with --queries: bound on the memory of the scores, in MiB"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Predict and print one table, or one JSON object; or fill a file."""
    with uncollected():
        from murp.runs import load

    _check(options)
    if options.queries is not None:
        from murp.prediction.results import check_output

        check_output(Path(options.out), force=options.force)
    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    if options.queries is None:
        _answer(options, result)
    else:
        _fill(options, result)


def _check(options: argparse.Namespace) -> None:
    from_file = options.queries is not None
    needed, foreign = (
        ("out",) if from_file else ("relation",),
        ("relation",) if from_file else ("out", "force", "memory"),
    )
    question = "--queries" if from_file else "--head" if options.head is not None else "--tail"
    for name in needed:
        if not getattr(options, name):
            raise ConfigError(f"{question} needs --{name}.")
    for name in foreign:
        if getattr(options, name):
            raise ConfigError(f"--{name} does not go with {question}. Leave it out.")


def _answer(options: argparse.Namespace, result: Run) -> None:
    from murp.cli.calibrate import note

    answers = result.predict(
        relation=options.relation, head=options.head, tail=options.tail, k=options.k, new_only=options.new_only
    )
    if options.json:
        query = {"head": options.head, "relation": options.relation, "tail": options.tail}
        print(json.dumps({**query, "predictions": [dataclasses.asdict(a) for a in answers]}, ensure_ascii=False))
        return
    origin = note(result)
    print(f"({options.head or '?'}, {options.relation}, {options.tail or '?'})\n")
    rows = [
        [
            *(a.rank, a.name, a.id, figure(a.probability)),
            *([] if origin is None else [figure(a.calibrated)]),
            "new" if a.known is None else f"known ({a.known})",
        ]
        for a in answers
    ]
    calibrated = [] if origin is None else ["calibrated"]
    print(table(["", "name", "id", "probability", *calibrated, ""], rows, right=(0, *range(3, 4 + len(calibrated)))))
    if origin is not None:
        print(f"\n{origin}")


def _fill(options: argparse.Namespace, result: Run) -> None:
    import time

    from murp.cli.calibrate import note
    from murp.cli.progress import bar
    from murp.prediction import count_queries, predict_file

    queries, out = Path(options.queries), Path(options.out)
    total = count_queries(queries, result.graph)
    begun = time.monotonic()
    # The first questions wait for files to open and loops to compile: the speed is that of the others.
    warm: list[tuple[float, int]] = []
    with bar(total, "questions") as shown:

        def advance(done: int) -> None:
            shown(done)
            if not warm:
                warm.append((time.monotonic(), done))

        rows = predict_file(
            result.model,
            result.graph,
            queries,
            out,
            k=options.k,
            new_only=options.new_only,
            calibration=result.calibration,
            force=options.force,
            memory=None if options.memory is None else options.memory * 2**20,
            advance=advance,
        )
    ended = time.monotonic()
    origin = note(result)
    if options.json:
        print(json.dumps({"out": str(out), "queries": total, "rows": rows, "seconds": ended - begun}))
        return
    since, first = warm[0]
    speed = f" ({(total - first) / (ended - since):,.0f} questions/s)" if total > first else ""
    questions = "1 question" if total == 1 else f"{total:,} questions"
    answers = "1 answer" if rows == 1 else f"{rows:,} answers"
    print(f"wrote {answers} to {questions} into {out}{speed}")
    if origin is not None:
        print(origin)
