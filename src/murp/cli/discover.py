"""``murp discover``: the most probable facts that the graph does not state."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from murp.cli.imports import uncollected
from murp.cli.text import Commands, add_run, figure, table, whole


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("discover", help="the most probable new facts of the whole graph, by relation")
    add_run(command)
    command.add_argument("--relation", metavar="R", help="id or name; default: every relation")
    command.add_argument("-k", type=whole(least=1), default=100, metavar="N", help="how many a relation; default: 100")
    command.add_argument(
        "--subjects",
        choices=("seen", "all"),
        default="seen",
        help="ask about the heads some fact of the relation states, or about every entity; default: seen",
    )
    command.add_argument("--out", metavar="FILE", help=".parquet, .csv or .jsonl, a row a fact; default: print them")
    command.add_argument("--force", action="store_true", help="replace an --out that exists")
    command.add_argument("--json", action="store_true", help="one JSON object a line for each fact")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Score all pairs, relation by relation, and print or write the best new ones."""
    with uncollected():
        from murp.cli.calibrate import note
        from murp.cli.progress import bar
        from murp.graph import KnownFacts
        from murp.prediction.discovery import discover, schema, subjects_of, table_of
        from murp.prediction.results import check_output, distinct_names, json_lines, writing
        from murp.runs import load

    out = None if options.out is None else Path(options.out)
    if out is not None:
        check_output(out, force=options.force)
    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    graph, calibration = result.graph, result.calibration
    relations = range(graph.num_relations) if options.relation is None else [graph.relations.find(options.relation)]
    subjects = sum(len(subjects_of(graph, relation, options.subjects)) for relation in relations)
    scores = subjects * graph.num_entities
    questions = "1 question" if subjects == 1 else f"{subjects:,} questions"
    print(f"{questions} × {graph.num_entities:,} entities: {scores:,} scores", file=sys.stderr)
    known = KnownFacts.of(graph)
    with bar(subjects, "questions") as advance:
        found = [
            discover(result.model, graph, relation, options.k, subjects=options.subjects, known=known, advance=advance)
            for relation in relations
        ]
    tables = [table_of(graph, facts, calibration) for facts in found]
    origin = note(result)
    if out is not None:
        with writing(out, schema(calibrated=calibration is not None)) as write:
            for part in tables:
                write(part)
        print(f"wrote {sum(map(len, tables)):,} new facts into {out}")
    elif options.json:
        for part in tables:
            print(json_lines(part).decode(), end="")
        return
    else:
        extra = [] if calibration is None else ["calibrated"]
        header = ["", "head", "relation", "tail", "probability", *extra]
        shown = [distinct_names(graph.entities, ends) for facts in found for ends in (facts.heads, facts.tails)]
        for part, heads, tails in zip(tables, shown[::2], shown[1::2], strict=True):
            rows = [
                [r["rank"], head, r["relation"], tail, *(figure(r[name]) for name in ("probability", *extra))]
                for r, head, tail in zip(part.to_pylist(), heads, tails, strict=True)
            ]
            if rows:
                print(table(header, rows, right=(0, 4, 5)), end="\n\n")
        if empty := [graph.relations.id(facts.relation) for facts in found if len(facts.heads) == 0]:
            print(f"no new facts of {', '.join(empty)}")
    if origin is not None:
        print(origin)
