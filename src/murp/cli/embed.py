"""``murp embed``: one hierarchy of a graph, embedded or laid out; ``murp reconstruct``: how well that worked."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from murp import display
from murp.cli.requested_runs import requested_runs
from murp.cli.settings import with_default
from murp.cli.text import Commands, add_reading, fast_imports, figure, load_source, whole
from murp.commands import command

if TYPE_CHECKING:
    from murp.hierarchy import Reconstruction

TRAINED = ("poincare", "lorentz")  # the first one by default
# Of the settings of a run those that a hierarchy is embedded with; `murp train --config` has them all.
SETTINGS: dict[str, tuple[type, str]] = {
    "dim": (int, "dimension d of the embedding"),
    "epochs": (int, "passes over the pairs of a node and one above it"),
    "lr": (float, "learning rate"),
    "objective": (str, "what is minimised: softmax, or rank (for hierarchies with many second parents)"),
    "softness": (float, "of the objective rank: how far distances have to differ for their order to count fully"),
    "optimizer": (str, "how points are updated: sgd or adagrad"),
    "lr_schedule": (str, "learning rate by epoch: constant, linear, cosine"),
    "warmup": (int, "epochs in which the learning rate rises to its value (burn-in)"),
    "negatives": (int, "nodes that are not above, for each pair"),
    "corruption": (str, "which these are: unrelated (any), or relatives (near in the hierarchy)"),
    "batch_size": (int, "pairs a step"),
    "seed": (int, "same seed, same machine: same bits"),
}


def add_embed(commands: Commands) -> None:
    """Declare the command."""
    one = commands.add_parser("embed", help="embed one hierarchy of a graph, or lay out its tree")
    one.add_argument(
        "--data", dest="source", required=True, metavar="TEXT", help="dataset name, folder, or one file of facts"
    )
    add_reading(one)
    one.add_argument(
        "--relation",
        nargs="+",
        default=[],
        metavar="NAME",
        help="relations that make the hierarchy; default: the only one",
    )
    one.add_argument(
        "--above", choices=("tail", "head"), default="tail",
        help="which side of a fact is the higher node (tail of a hypernym, head of has_part); default: tail",
    )  # fmt: skip
    one.add_argument(
        "--model", choices=(*TRAINED, "layout"), default=TRAINED[0],
        help="train embeddings on the ball or the hyperboloid, or lay out the tree in two dimensions; default: "
        f"{TRAINED[0]}",
    )  # fmt: skip
    one.add_argument(
        "--scale", type=float, metavar="X",
        help="length of an edge of the layout; default: long enough that no edges cross, but less for a deep tree",
    )  # fmt: skip
    one.add_argument("--out", required=True, metavar="RUN", help="run folder to make")
    one.add_argument("--json", action="store_true", help="one JSON object per line: every epoch, then the metrics")
    one.add_argument("--quiet", action="store_true", help="print only warnings and errors to standard error")
    one.set_defaults(run=run_embed)


def settings(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """An option for each of ``SETTINGS``, with its default in the run that ``words`` describe; a layout has none."""
    found = requested_runs([f"--model={TRAINED[0]}", *words])
    defaults = found.defaults() if found.named["model"][0] in TRAINED else {}
    for name, (kind, help) in SETTINGS.items():
        metavar = {int: "N", float: "X", str: "TEXT"}[kind]
        reads: Any = whole(least=0) if kind is int else kind
        text = with_default(help, defaults.get(name))
        command.add_argument(f"--{name.replace('_', '-')}", type=reads, metavar=metavar, help=text)


def run_embed(options: argparse.Namespace) -> None:
    """Embed, and print how well the hierarchy is reconstructed."""
    given = {name: getattr(options, name) for name in SETTINGS if getattr(options, name) is not None}
    with fast_imports():
        from murp.hierarchy import Taxonomy, make, reconstruction
        from murp.training import progress

    if options.quiet:
        display.be_quiet()
    graph = load_source(options)
    taxonomy = Taxonomy.of(graph, options.relation, above=options.above)
    shown = progress.chosen(json=options.json, quiet=options.quiet)
    run = make(
        taxonomy,
        out=options.out,
        model=options.model,
        scale=options.scale,
        name=graph.name,
        source=graph.source,
        progress=shown,
        **given,
    )
    found = reconstruction(run)
    if options.json:
        print(json.dumps({"run": str(run.path), **dataclasses.asdict(found)}))
        return
    roots = f"{len(taxonomy.roots):,} root{'s' if len(taxonomy.roots) > 1 else ''}"
    print(f"{len(taxonomy):,} nodes, {len(taxonomy.edges):,} edges, {roots}, {found.pairs:,} pairs of the closure")
    _say(found)
    print(f"saved in {run.path}\nnext: {command('explore', run.path)}")


def add_reconstruct(commands: Commands) -> None:
    """Declare the command."""
    one = commands.add_parser("reconstruct", help="how well a hierarchy can be reconstructed from its embedding")
    one.add_argument("run_folder", metavar="RUN", help="run folder of `murp embed`")
    one.add_argument("--json", action="store_true", help="one JSON object")
    one.set_defaults(run=run_reconstruct)


def run_reconstruct(options: argparse.Namespace) -> None:
    """Print mean rank and MAP."""
    with fast_imports():
        from murp.api.training import load

    found = load(options.run_folder).reconstruct()
    if options.json:
        print(json.dumps(dataclasses.asdict(found)))
    else:
        _say(found)


def _say(found: Reconstruction) -> None:
    print(f"reconstruction: mean rank {found.mean_rank:.2f}, MAP {figure(found.map)} ({found.nodes:,} nodes)")
