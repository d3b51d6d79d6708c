"""``murp data``: list datasets, describe one, look for flaws, convert, split by hierarchy."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from murp.cli.text import Commands, add_output, add_source, data_dir, load_source, print_table, table, whole
from murp.tables import Number


def add(commands: Commands) -> None:
    """Declare the command and its five verbs."""
    verbs = commands.add_parser("data", help="datasets: list, info, audit, convert, hierarchy-split").add_subparsers(
        title="verbs", metavar="VERB", required=True
    )
    verb = verbs.add_parser("list", help="the named datasets")
    add_output(verb, "one JSON array")
    verb.set_defaults(run=run_list)

    verb = verbs.add_parser("info", help="origin, licence, citation and counts of a dataset")
    verb.add_argument("name", metavar="NAME")
    verb.add_argument("--json", action="store_true", help="one JSON object")
    verb.set_defaults(run=run_info)

    verb = verbs.add_parser("audit", help="look for flaws: duplicates, leaks, unseen entities, inverse relations …")
    add_source(verb)
    verb.add_argument("--json", action="store_true", help="one JSON object")
    verb.set_defaults(run=run_audit)

    verb = verbs.add_parser("convert", help="write a dataset in another format; split a single file")
    add_source(verb)
    verb.add_argument("out", metavar="OUT", help="folder to make")
    verb.add_argument(
        "--format",
        default="tsv",
        help="tsv, csv or parquet, with .gz, .xz or .zst if wanted (tsv.zst); graph: murp's own format, which is "
        "mapped into memory, and for which files of any size are read in pieces; default: tsv",
    )
    verb.set_defaults(run=run_convert)
    _add_hierarchy_split(verbs)


def run_list(options: argparse.Namespace) -> None:
    """One row per dataset."""
    from murp.graph.datasets import datasets

    known = datasets()
    if options.json:
        print(
            json.dumps(
                [{"name": d.name, "description": d.description, **d.counts()} for d in known], ensure_ascii=False
            )
        )
        return
    columns = ("entities", "relations", "train", "valid", "test")
    rows = [[d.name, *(Number(d.counts()[c]) for c in columns), d.description] for d in known]
    last = "" if options.format == "text" else "description"
    print_table(options, ["name", *columns, last], rows, right=range(1, 6))


def run_info(options: argparse.Namespace) -> None:
    """Everything the registry knows of one dataset."""
    from murp.graph.datasets import dataset

    facts = dataset(options.name).to_dict()
    if options.json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    for name, value in facts.items():
        if isinstance(value, dict):
            for file, text in value.items():
                print(f"{name:<12} {file}: {text}")
        else:
            print(f"{name:<12} {value:,}" if isinstance(value, int) else f"{name:<12} {value}")


def run_audit(options: argparse.Namespace) -> None:
    """What is wrong with a dataset, with counts and examples."""
    from murp.graph.auditing.audit import audit_source
    from murp.graph.reading.columns import Columns

    columns = Columns.parse(options.columns, header=not options.no_header)
    found = audit_source(options.source, data_dir=data_dir(options), seed=options.split_seed, columns=columns)
    print(json.dumps(found.to_dict(), ensure_ascii=False) if options.json else "\n".join(found.lines()))


def run_convert(options: argparse.Namespace) -> None:
    """Read in any format, write in one."""
    from murp.graph import SPLITS
    from murp.graph.convert import check_format, convert
    from murp.graph.reading.columns import Columns
    from murp.graph.sources import code_source

    check_format(options.format)  # reading may take long
    if options.format.lower() == "graph":
        columns = Columns.parse(options.columns, header=not options.no_header)
        how: dict[str, Any] = {"data_dir": data_dir(options), "seed": options.split_seed, "columns": columns}
        graph = code_source(options.source, Path(options.out), **how)
    else:
        graph = load_source(options)
        convert(graph, Path(options.out), options.format)
    counts = ", ".join(f"{len(graph.split(split)):,} {split}" for split in SPLITS)
    print(f"wrote {graph.name} to {options.out}: {counts}")


def _add_hierarchy_split(verbs: Commands) -> None:
    """Declare the verb."""
    verb = verbs.add_parser("hierarchy-split", help="subsets with given shares of hierarchical relations")
    add_source(verb)
    verb.add_argument("--out", metavar="DIR", required=True, help="folder to make, with one folder for each share")
    verb.add_argument(
        "--shares",
        type=whole(least=1),
        nargs="+",
        default=[100, 75, 50, 25],
        metavar="PERCENT",
        help="shares of hierarchical relations; default: 100 75 50 25",
    )
    for split in ("valid", "test"):
        text = f"facts drawn for {split}, before relations are left out; default: 10000"
        verb.add_argument(f"--{split}", type=whole(least=1), default=10_000, metavar="N", help=text)
    verb.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="seed that draws facts and relations; default: 0"
    )
    verb.add_argument(
        "--hierarchical",
        default="auto",
        metavar="R,…",
        help="ids or names of the hierarchical relations; default: auto, by Krackhardt score and length of paths",
    )
    verb.set_defaults(run=run_hierarchy_split)


def run_hierarchy_split(options: argparse.Namespace) -> None:
    """Draw, write, and say what was written."""
    from murp.analysis.hierarchy_split import made_by
    from murp.graph import SPLITS

    graph = load_source(options)
    named = None if options.hierarchical == "auto" else options.hierarchical.split(",")
    subsets, rule = made_by(
        graph,
        Path(options.out),
        hierarchical=named,
        shares=options.shares,
        valid=options.valid,
        test=options.test,
        seed=options.seed,
    )
    rows = [
        [s.graph.name, len(s.hierarchical), len(s.others), *(f"{len(s.graph.split(split)):,}" for split in SPLITS)]
        for s in subsets
    ]
    print(f"wrote to {options.out}; hierarchical relations {rule}\n")
    print(table(["", "hierarchical", "others", *SPLITS], rows, right=range(1, 6)))
