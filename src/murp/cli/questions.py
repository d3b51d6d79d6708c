"""``murp predict``, ``discover`` and ``nearest``: questions to a run, answered as a table, as JSON or in a file."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from murp.cli.text import (
    Commands,
    add_approximate,
    add_output,
    add_run,
    add_types,
    bar,
    fast_imports,
    figure,
    join_ranks,
    one_of_many,
    open_run,
    print_table,
    table,
    whole,
)
from murp.errors import ConfigError
from murp.tables import Number

if TYPE_CHECKING:
    from murp.api.run import Run
    from murp.prediction.discovery import NewFacts

_QUERIES = """file of questions: .tsv, .csv, .jsonl or .parquet, with a head and a relation in each row; with a header
(head, relation, tail) also a relation and a tail, or three columns with ? for the missing one"""


def add_predict(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("predict", help="the most probable tails of a head, or heads of a tail")
    add_run(command)
    given = command.add_mutually_exclusive_group(required=True)
    given.add_argument("--head", metavar="X", help="id or name; predict tails")
    given.add_argument("--tail", metavar="X", help="id or name; predict heads")
    given.add_argument("--queries", metavar="FILE", help=_QUERIES)
    command.add_argument("--relation", metavar="R", help="id or name of the relation, with --head or --tail")
    command.add_argument("-k", type=whole(least=1), default=10, metavar="N", help="how many; default: 10")
    command.add_argument("--new-only", action="store_true", help="leave out facts that are in the graph")
    add_types(command)
    command.add_argument(
        "--out", metavar="FILE", help=".parquet, .csv or .jsonl with one row per answer; required with --queries"
    )
    command.add_argument("--force", action="store_true", help="overwrite the file --out")
    command.add_argument(
        "--memory",
        type=whole(least=1),
        metavar="MIB",
        help="with --queries: limit for the memory of the scores, in MiB",
    )
    add_approximate(command)
    add_output(command)
    command.set_defaults(run=run_predict)


def run_predict(options: argparse.Namespace) -> None:
    """Predict and print one table, or one JSON object; or fill a file."""
    if one_of_many():
        _on_ranks("predict", options, _predict)
        return
    _check(options)
    _predict(options, open_run(options))


def _check(options: argparse.Namespace, *, writes: bool = True) -> None:
    """Raise for options that do not go together, and if the process that ``writes`` could not write ``--out``."""
    if options.run is run_predict:
        _check_question(options)
    if options.out is not None and writes:
        with fast_imports():
            from murp.prediction.results import check_output

        check_output(Path(options.out), force=options.force)


def _predict(options: argparse.Namespace, result: Run) -> None:
    if options.out is not None:
        _fill_file(options, result)
    else:
        _print_answers(options, result)


def _on_ranks(name: str, options: argparse.Namespace, answer: Callable[[argparse.Namespace, Run], None]) -> None:
    """Answer on the first rank; the others score their own entities for it."""
    with fast_imports():
        from murp.api.run import Run
        from murp.training.sharded import answered

    ranks = join_ranks(name, options)
    with ranks.together():
        for name in ("types", "approximate"):
            if getattr(options, name, False):
                raise ConfigError(f"--{name} works only in one process. Leave it out, or start without torchrun.")
        _check(options, writes=ranks.first)
    answered(Path(options.path), ranks, options.checkpoint, options.device, lambda run: answer(options, Run.of(run)))


def _check_question(options: argparse.Namespace) -> None:
    from_file = options.queries is not None
    question = "--queries" if from_file else "--head" if options.head is not None else "--tail"
    needed, foreign = ("out", "relation") if from_file else ("relation", "memory")
    if not getattr(options, needed):
        raise ConfigError(f"{question} needs --{needed}.")
    if getattr(options, foreign):
        raise ConfigError(f"--{foreign} does not go with {question}. Leave it out.")
    if options.force and options.out is None:
        raise ConfigError("--force replaces an --out that exists: give --out FILE, or leave it out.")
    if options.out is not None and options.format != "text":
        raise ConfigError("--format does not go with --out: the name of the file says the format. Leave it out.")


def _print_answers(options: argparse.Namespace, result: Run) -> None:
    from murp.cli.evaluate import note

    answers = result.predict(
        relation=options.relation,
        head=options.head,
        tail=options.tail,
        k=options.k,
        new_only=options.new_only,
        types=options.types,
        approximate=options.approximate,
    )
    if options.json:
        query = {"head": options.head, "relation": options.relation, "tail": options.tail}
        print(json.dumps({**query, "predictions": [dataclasses.asdict(a) for a in answers]}, ensure_ascii=False))
        return
    origin = note(result)
    plain = options.format == "text"
    if plain:
        print(f"({options.head or '?'}, {options.relation}, {options.tail or '?'})\n")
    rows = [
        [
            *(a.rank, a.name, a.id, Number(a.probability)),
            *([] if origin is None else [Number(a.calibrated)]),
            "new" if a.known is None else f"known ({a.known})",
        ]
        for a in answers
    ]
    calibrated = [] if origin is None else ["calibrated"]
    header = ["" if plain else "rank", "name", "id", "probability", *calibrated, "" if plain else "known"]
    asked = {"head": options.head or "?", "relation": options.relation, "tail": options.tail or "?"}
    if plain and not rows:
        print("no answer is left" + _why_none(options))
        return
    print_table(options, header, rows, right=(0, *range(3, 4 + len(calibrated))), about=asked)
    if plain and origin is not None:
        print(f"\n{origin}")


def _why_none(options: argparse.Namespace) -> str:
    """Which options left out every answer."""
    given = [name for name, on in (("--new-only", options.new_only), ("--types", options.types)) if on]
    return f": {' and '.join(given)} leave{'s' if len(given) == 1 else ''} out every entity" if given else ""


def _fill_file(options: argparse.Namespace, result: Run) -> None:
    """The answers to one question, or to a file of them, as a file."""
    import time

    from murp.cli.evaluate import note
    from murp.prediction import count_queries

    one = [(options.head, options.relation, options.tail)]
    queries = one if options.queries is None else Path(options.queries)
    total = len(one) if options.queries is None else count_queries(Path(options.queries), result.graph)
    begun = time.monotonic()
    # The first questions wait for files to open and loops to compile: the speed is that of the others.
    warm: list[tuple[float, int]] = []
    with bar(total, "questions") as shown:

        def advance(done: int) -> None:
            shown(done)
            if not warm:
                warm.append((time.monotonic(), done))

        rows = result.predict_file(
            queries,
            options.out,
            k=options.k,
            new_only=options.new_only,
            types=options.types,
            force=options.force,
            memory=None if options.memory is None else options.memory * 2**20,
            approximate=options.approximate,
            advance=advance,
        )
    ended = time.monotonic()
    origin = note(result)
    if options.json:
        print(json.dumps({"out": options.out, "queries": total, "rows": rows, "seconds": ended - begun}))
        return
    since, first = warm[0]
    speed = f" ({(total - first) / (ended - since):,.0f} questions/s)" if total > first else ""
    questions = "1 question" if total == 1 else f"{total:,} questions"
    answers = "1 answer" if rows == 1 else f"{rows:,} answers"
    print(f"wrote {answers} to {questions} into {options.out}{speed}")
    if origin is not None:
        print(origin)


def add_discover(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("discover", help="the most probable new facts of the whole graph, by relation")
    add_run(command)
    command.add_argument("--relation", metavar="R", help="id or name; default: every relation")
    command.add_argument("-k", type=whole(least=1), default=100, metavar="N", help="facts per relation; default: 100")
    command.add_argument(
        "--heads",
        choices=("seen", "all"),
        default="seen",
        help="only heads that a fact of the relation has (seen), or every entity (all); default: seen",
    )
    add_types(command)
    # The name of --heads in earlier versions.
    command.add_argument("--subjects", dest="heads", choices=("seen", "all"), help=argparse.SUPPRESS)
    command.add_argument(
        "--out", metavar="FILE", help=".parquet, .csv or .jsonl with one row per fact; default: print them"
    )
    command.add_argument("--force", action="store_true", help="overwrite the file --out")
    command.add_argument(
        "--json", action="store_true", help="one JSON object per line for each fact; with --out, only one"
    )
    command.set_defaults(run=run_discover)


def run_discover(options: argparse.Namespace) -> None:
    """Score all pairs, relation by relation, and print or write the best new ones."""
    if one_of_many():
        _on_ranks("discover", options, _discover)
        return
    _check(options)
    _discover(options, open_run(options))


def _discover(options: argparse.Namespace, result: Run) -> None:
    from murp.cli.evaluate import note
    from murp.prediction.discovery import heads_of, relations_asked
    from murp.prediction.results import json_lines

    graph = result.graph
    asked = sum(len(heads_of(graph, r, options.heads)) for r in relations_asked(graph, options.relation))
    questions = "1 question" if asked == 1 else f"{asked:,} questions"
    scores = asked * graph.num_entities
    print(f"{questions} × {graph.num_entities:,} entities: {scores:,} scores", file=sys.stderr)
    with bar(asked, "questions") as advance:
        new = result.discover(options.relation, options.k, heads=options.heads, types=options.types, advance=advance)
    origin = note(result)
    if options.out is not None:
        _write_new_facts(options, new)
    elif options.json:
        for part in new.tables:
            print(json_lines(part).decode(), end="")
    else:
        _print_new_facts(new)
    if origin is not None and not options.json:
        print(origin)


def _write_new_facts(options: argparse.Namespace, new: NewFacts) -> None:
    from murp.prediction.discovery import schema
    from murp.prediction.results import writing

    with writing(Path(options.out), schema(calibrated=new.calibration is not None)) as write:
        for part in new.tables:
            write(part)
    if options.json:
        print(json.dumps({"out": options.out, "rows": len(new)}))
    else:
        print(f"wrote {len(new):,} new facts into {options.out}")


def _print_new_facts(new: NewFacts) -> None:
    from murp.prediction.results import distinct_names

    graph = new.graph
    extra = [] if new.calibration is None else ["calibrated"]
    header = ["", "head", "relation", "tail", "probability", *extra]
    for facts, part in zip(new.found, new.tables, strict=True):
        heads, tails = (distinct_names(graph.entities, ends) for ends in (facts.heads, facts.tails))
        rows = [
            [r["rank"], head, r["relation"], tail, *(figure(r[name]) for name in ("probability", *extra))]
            for r, head, tail in zip(part.to_pylist(), heads, tails, strict=True)
        ]
        if rows:
            print(table(header, rows, right=(0, 4, 5)), end="\n\n")
    if empty := [graph.relations.id(facts.relation) for facts in new.found if len(facts.heads) == 0]:
        print(f"no new facts of {', '.join(empty)}")


def add_nearest(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("nearest", help="the entities nearest to one, by distance in the geometry")
    add_run(command)
    command.add_argument("entity", metavar="X", help="id or name")
    command.add_argument("-k", type=whole(least=1), default=10, metavar="N", help="how many; default: 10")
    add_approximate(command)
    add_output(command)
    command.set_defaults(run=run_nearest)


def run_nearest(options: argparse.Namespace) -> None:
    """Search and print one table, or one JSON object."""
    result = open_run(options)
    found = result.nearest(options.entity, options.k, approximate=options.approximate)
    if options.json:
        neighbours = [dataclasses.asdict(n) for n in found]
        print(json.dumps({"entity": options.entity, "neighbours": neighbours}, ensure_ascii=False))
        return
    rows = [[n.rank, n.name, n.id, Number(n.distance)] for n in found]
    first = "" if options.format == "text" else "rank"
    print_table(options, [first, "name", "id", f"{result.model.geometry.name} distance"], rows, right=(0, 3))


def add_index(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("index", help="an index of the entities, for approximate answers among millions")
    add_run(command)
    command.add_argument(
        "--recall",
        type=float,
        default=0.98,
        metavar="SHARE",
        help="share of the ten best answers that must be found; default: 0.98",
    )
    command.add_argument(
        "--cells",
        type=whole(least=1),
        metavar="N",
        help="number of cells; default: four times the square root of the number of entities",
    )
    command.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="seed of the centres and questions; default: 0"
    )
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run_index)


def run_index(options: argparse.Namespace) -> None:
    """Make the index, and print its recall."""
    with fast_imports():
        from murp.display import aside
        from murp.runs import folder

    result = open_run(options)
    made = result.index(
        recall=options.recall, cells=options.cells, seed=options.seed, say=lambda line: aside(f"murp: {line} …")
    )
    place = result.path / folder.INDEX
    if options.json:
        figures = {name: getattr(made, name) for name in ("cells", "looks", "looks_near", "recall", "recall_near")}
        print(json.dumps({"index": str(place), **figures}))
        return
    rows = [
        ["answers (predict)", Number(made.looks), Number(made.recall)],
        ["nearest entities (nearest)", Number(made.looks_near), Number(made.recall_near)],
    ]
    print(f"{made.cells:,} cells; of the ten best of other questions than those it was fitted to:\n")
    print(table(["", "cells looked into", "recall"], rows, right=(1, 2)))
    print(f"\nsaved in {place}; `--approximate` uses it")
