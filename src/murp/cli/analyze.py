"""``murp analyze``: the hierarchies of a dataset, or how a run represents them."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
from typing import TYPE_CHECKING

from murp.cli.reports import described
from murp.cli.text import Commands, add_output, add_source, fast_imports, figure, load_source, print_table, table, whole
from murp.commands import command
from murp.errors import ConfigError
from murp.tables import Number

if TYPE_CHECKING:
    from murp.analysis import Correlation, RelationProfile
    from murp.analysis.embedding import EmbeddingReport
    from murp.analysis.higher import Comparison
    from murp.api.run import Run


LIKELY = 0.5  # from this σ(φ) on the model takes a fact for true


def add(commands: Commands) -> None:
    """Declare the command."""
    analyze = commands.add_parser("analyze", help="how hierarchical a dataset is; how a run represents it")
    add_source(analyze, optional=True)
    analyze.add_argument("--run", dest="run_folder", metavar="RUN", help="analyse a trained run instead of a dataset")
    analyze.add_argument(
        "--relation", metavar="R", help="analyse only this relation of DATA; with --higher: the relation to compare by"
    )
    analyze.add_argument("--dim", type=whole(least=1), metavar="D", help="dimension for the advice; default: 40")
    analyze.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="seed of the sample for δ; default: 0"
    )
    analyze.add_argument(
        "--higher", nargs=2, metavar=("A", "B"), help="with --run and --relation: which one is higher?"
    )
    add_output(analyze)
    analyze.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run one of the three analyses."""
    if (options.source is None) == (options.run_folder is None):
        raise ConfigError("give either DATA or --run RUN: what is to be analysed.")
    if options.source is not None:
        if os.path.isfile(os.path.join(options.source, "config.toml")):
            here = command("analyze", "--run", options.source)
            raise ConfigError(f"{options.source} is a run folder, not a dataset: `{here}` analyses it.")
        if options.higher:
            raise ConfigError("--higher compares embeddings: it needs --run RUN.")
        _run_data(options)
        return
    if bool(options.higher) != (options.relation is not None) or options.dim is not None:
        raise ConfigError("with --run, --higher and --relation go together, and --dim is the run's own: leave it out.")
    with fast_imports():
        from murp.api.training import load

    result = load(options.run_folder)
    if options.higher:
        if options.format != "text":
            raise ConfigError("--higher answers in sentences: leave out --format.")
        _run_higher(options, result)
    else:
        _run_embedding(options, result)


def _run_data(options: argparse.Namespace) -> None:
    from murp.analysis.graph_report import DIMENSION, graph_report

    graph = load_source(options)
    found = graph_report(graph, relation=options.relation, dim=options.dim or DIMENSION, seed=options.seed)
    if options.json:
        print(json.dumps(found.to_dict(), ensure_ascii=False))
        return
    if options.format == "text":
        print(f"{graph.name}: train, valid and test together, duplicates merged\n")
    header = ["relation", "facts", "entities", "Krackhardt", "longest", "mean", "symmetry", "kind", "leads", "roots"]
    rows = [_profile_row(one) for one in found.relations]
    about = {"data": graph.name}
    print_table(options, [*header, "leaves", _verdict(options)], rows, right=(1, 2, 3, 4, 5, 6, 9, 10), about=about)
    if options.format != "text":
        return
    print("\nlongest, mean: of the shortest paths, in edges; leads: towards the roots (up) or the leaves (down)")
    print("roots, leaves: a cycle counts as one")
    print("", *found.advice.sentences, sep="\n")


def _run_embedding(options: argparse.Namespace, result: Run) -> None:
    report = result.analyze()
    if options.json:
        print(json.dumps(report.to_dict() | {"run": options.run_folder}, ensure_ascii=False))
        return
    if options.format == "text":
        print(described(result))
        print(f"hits@10: split {report.split}, protocol {report.protocol}, filtered\n")
    _print_fits(options, report)
    if options.format != "text":
        return
    print("\nρ: Spearman's, of depth (edges below the nearest root) with norm, over n entities seen in training")
    print(
        f"norm with bias: {', '.join(f'{name} {_rho(c)}' for name, c in report.norm_and_bias.items()) or 'no biases'}"
    )
    print(f"Krackhardt score with hits@10, over relations: {_rho(report.score_and_hits)}")


def _run_higher(options: argparse.Namespace, result: Run) -> None:
    first, second = options.higher
    found = result.higher(first, second, options.relation)
    if options.json:
        print(json.dumps(dataclasses.asdict(found) | {"run": options.run_folder}, ensure_ascii=False))
        return
    names = {side.id: side.name for side in (found.first, found.second)}
    rows = [
        [side.name, side.id, "–" if side.depth is None else side.depth, figure(side.norm), figure(side.score)]
        for side in (found.first, found.second)
    ]
    print(table(["", "id", "depth", "norm", f"score {found.relation} the other"], rows, right=(2, 3, 4)))
    entities = result.graph.entities
    path = f" –{found.relation}→ ".join(entities.name(entities.find(i)) for i in found.path)
    print(f"\nby the graph: {_by_graph(found)}{f' ({path})' if path else ''}")
    print(f"by the scores: {_by_scores(found, names)}")
    print(f"by the norms: {names.get(found.by_norm or '', 'neither')} is nearer the origin")
    print(f"\ndepth with norm under {found.relation} in this run: {_rho(found.depth_and_norm)}", end="")
    print(" (1: the deeper, the further out; 0: norms say nothing)")


def _by_scores(found: Comparison, names: dict[str, str]) -> str:
    higher = names.get(found.by_score or "", "neither")
    chances = [side.probability for side in (found.first, found.second)]
    if max(chances) < LIKELY:
        both = " and ".join(map(figure, chances))
        return f"neither fact is likely (p {both}); by the better one {higher} is higher"
    return f"{higher} is higher"


def _by_graph(found: Comparison) -> str:
    if found.by_graph is not None:
        higher = found.first if found.by_graph == found.first.id else found.second
        return f"{higher.name} is higher: {found.relation} leads {found.direction}"
    if found.both_ways:
        return f"neither is higher: {found.relation} leads both ways between them"
    return f"no path of {found.relation} joins them"


def _print_fits(options: argparse.Namespace, report: EmbeddingReport) -> None:
    from murp.analysis.hierarchy import score_text

    rows = [
        [
            fit.profile.relation,
            score_text(fit.profile.krackhardt),
            fit.profile.longest_path,
            Number(fit.depth_and_norm.rho),
            Number(fit.depth_and_norm.n),
            Number(fit.hits),
            Number(fit.queries),
            _mark(fit.profile),
        ]
        for fit in report.relations
    ]
    header = ["relation", "Krackhardt", "longest", "ρ", "n", "hits@10", "queries", _verdict(options)]
    print_table(options, header, rows, right=range(1, 7), about={"split": report.split, "protocol": report.protocol})


def _verdict(options: argparse.Namespace) -> str:
    """The heading of the last column; empty in the format text."""
    return "" if options.format == "text" else "hierarchical"


def _profile_row(one: RelationProfile) -> list[object]:
    from murp.analysis.hierarchy import score_text

    return [
        one.relation,
        Number(one.edges),
        Number(one.entities),
        score_text(one.krackhardt),
        one.longest_path,
        Number(one.mean_path, 1),
        Number(one.symmetry, 2),
        one.cardinality,
        one.direction,
        Number(one.roots),
        Number(one.leaves),
        _mark(one),
    ]


def _mark(one: RelationProfile) -> str:
    return "hierarchical" if one.hierarchical else ""


def _rho(correlation: Correlation) -> str:
    return f"ρ {figure(correlation.rho)}, n {correlation.n:,}"
