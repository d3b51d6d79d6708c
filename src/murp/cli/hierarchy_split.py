"""``murp data hierarchy-split``: subsets of a dataset with given shares of hierarchical relations."""

from __future__ import annotations

import argparse
from pathlib import Path

from murp.cli.source import add_source, data_dir
from murp.cli.text import Commands, table, whole


def add(verbs: Commands) -> None:
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
        help="of hierarchical relations among the relations; default: 100 75 50 25",
    )
    for split in ("valid", "test"):
        text = f"facts drawn for {split}, before relations are left out; default: 10000"
        verb.add_argument(f"--{split}", type=whole(least=1), default=10_000, metavar="N", help=text)
    verb.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="draws facts and relations; default: 0"
    )
    verb.add_argument(
        "--hierarchical",
        default="auto",
        metavar="R,…",
        help="ids or names of the hierarchical relations; default: auto, by Krackhardt score and length of paths",
    )
    verb.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Draw, write, and say what was written."""
    from murp.analysis.hierarchy_split import AUTO, hierarchical_relations, hierarchy_split, write
    from murp.graph import SPLITS, KnowledgeGraph

    graph = KnowledgeGraph.load(options.source, data_dir=data_dir(options), seed=options.split_seed)
    if options.hierarchical == "auto":
        rule, chosen = f"auto: {AUTO}", hierarchical_relations(graph)
    else:
        rule, chosen = "named", [graph.relations.find(name) for name in options.hierarchical.split(",")]
    subsets = hierarchy_split(
        graph, chosen, shares=options.shares, valid=options.valid, test=options.test, seed=options.seed
    )
    write(subsets, Path(options.out), origin=graph.name, seed=options.seed, rule=rule)
    rows = [
        [s.graph.name, len(s.hierarchical), len(s.others), *(f"{len(s.graph.split(split)):,}" for split in SPLITS)]
        for s in subsets
    ]
    print(f"wrote to {options.out}; hierarchical relations {rule}\n")
    print(table(["", "hierarchical", "others", *SPLITS], rows, right=range(1, 6)))
