"""``murp analyze``: the hierarchies of a dataset, or what a run made of them."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING

from murp.cli.evaluate import described
from murp.cli.text import Commands, add_output, add_source, fast_imports, figure, load_source, print_table, table, whole
from murp.errors import ConfigError
from murp.recipes import decide
from murp.tables import Number

if TYPE_CHECKING:
    from murp.analysis import Correlation, RelationProfile
    from murp.analysis.embedding import EmbeddingReport
    from murp.analysis.higher import Comparison
    from murp.runs import Run


LIKELY = 0.5  # from this σ(φ) on the model takes a fact for true


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("analyze", help="how hierarchical a dataset is; what a run made of it")
    add_source(command, optional=True)
    command.add_argument("--run", dest="run_folder", metavar="RUN", help="analyse a trained run instead of a dataset")
    command.add_argument("--relation", metavar="R", help="one relation of DATA alone; the one that --higher asks about")
    command.add_argument("--dim", type=whole(least=1), metavar="D", help="dimension to advise on; default: 40")
    command.add_argument(
        "--seed", type=whole(least=0), default=0, metavar="N", help="draws the sample for δ; default: 0"
    )
    command.add_argument(
        "--higher", nargs=2, metavar=("A", "B"), help="with --run and --relation: which one is higher?"
    )
    add_output(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Hand over to one of the three analyses."""
    if (options.source is None) == (options.run_folder is None):
        raise ConfigError("give either DATA or --run RUN: what is to be analysed.")
    if options.source is not None:
        if options.higher:
            raise ConfigError("--higher compares embeddings: it needs --run RUN.")
        _run_data(options)
        return
    if bool(options.higher) != (options.relation is not None) or options.dim is not None:
        raise ConfigError("with --run, --higher and --relation go together, and --dim is the run's own: leave it out.")
    with fast_imports():
        from murp.runs import load

    result = load(options.run_folder)
    if options.higher:
        if options.format != "text":
            raise ConfigError("--higher answers in sentences: leave out --format.")
        _run_higher(options, result)
    else:
        _run_embedding(options, result)


def _run_data(options: argparse.Namespace) -> None:
    import numpy as np

    from murp.analysis import (
        advise,
        advise_on_relation,
        hyperbolicity,
        profile,
        relation_edges,
        relation_profiles,
    )
    from murp.graph.shape import shape

    dim = options.dim or 40
    graph = load_source(options)
    if options.relation is None:
        profiles = relation_profiles(graph)
        edges = graph.facts()[:, [0, 2]].astype(np.int64)
    else:
        relation = graph.relations.find(options.relation)
        edges = relation_edges(graph)[relation]
        profiles = [profile(graph.relations.id(relation), edges)]
    curved = hyperbolicity(edges, seed=options.seed)
    advice = advise(profiles, curved, dim) if options.relation is None else advise_on_relation(profiles[0], curved, dim)
    choice = decide(shape(graph)) if options.relation is None else None
    if options.json:
        found = {
            "name": graph.name,
            "relations": [_profile_dict(one) for one in profiles],
            "hyperbolicity": None if curved is None else dataclasses.asdict(curved),
            "advice": dataclasses.asdict(advice),
            "recipe": None if choice is None else dataclasses.asdict(choice),
        }
        print(json.dumps(found, ensure_ascii=False))
        return
    if options.format == "text":
        print(f"{graph.name}: train, valid and test together, duplicates merged\n")
    header = ["relation", "facts", "entities", "Krackhardt", "longest", "mean", "symmetry", "kind", "leads", "roots"]
    rows = [_profile_row(one) for one in profiles]
    about = {"data": graph.name}
    print_table(options, [*header, "leaves", _verdict(options)], rows, right=(1, 2, 3, 4, 5, 6, 9, 10), about=about)
    if options.format != "text":
        return
    print("\nlongest, mean: of the shortest paths, in edges; leads: towards the roots (up) or the leaves (down)")
    print("roots, leaves: a cycle counts as one")
    print("", *advice.sentences, sep="\n")


def _run_embedding(options: argparse.Namespace, result: Run) -> None:
    from murp.analysis.embedding import embedding_report

    report = embedding_report(result)
    if options.json:
        found = dataclasses.asdict(report) | {"run": options.run_folder}
        for fit, one in zip(found["relations"], report.relations, strict=True):
            fit["profile"] = _profile_dict(one.profile)
        print(json.dumps(found, ensure_ascii=False))
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
    from murp.analysis.higher import compare

    first, second = options.higher
    found = compare(result, first, second, options.relation)
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
    """The heading of the last column, which in a terminal explains itself."""
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


def _profile_dict(one: RelationProfile) -> dict[str, object]:
    return dataclasses.asdict(one) | {"hierarchical": one.hierarchical}


def _mark(one: RelationProfile) -> str:
    return "hierarchical" if one.hierarchical else ""


def _rho(correlation: Correlation) -> str:
    return f"ρ {figure(correlation.rho)}, n {correlation.n:,}"
