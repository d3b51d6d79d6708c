"""``murp demo``: a demonstration in the browser within a minute."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from murp.cli.text import Commands, fast_imports, whole
from murp.display import show

ROOT = "artifact.n.01"
ASIA = "#entity=asia.n.01&relation=has_part&view=question"
_WHAT = {
    "tree": "WordNet's artifacts as a tree that grows in the disk, with sliders for curvature and dimension",
    "wordnet": "a training of MuRP on wordnet-mini, then the run",
    "countries": "the same, then the question for the parts of Asia",
}


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("demo", help="a demonstration in the browser within a minute")
    explained = "; ".join(f"{name}: {what}" for name, what in _WHAT.items())
    command.add_argument("what", choices=tuple(_WHAT), help=explained)
    command.add_argument("--out", metavar="RUN", help="run folder to make, or to show again; default: runs/demo-WHAT")
    command.add_argument("--beside", action="store_true", help="show MuRE beside MuRP (wordnet, countries)")
    command.add_argument("--epochs", type=whole(least=1), default=60, metavar="N", help="default: 60")
    command.add_argument(
        "--port", type=whole(least=0), default=8000, metavar="N", help="default: 8000; 0: any free port"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Make the demonstration if it does not exist yet, and serve it until Ctrl-C."""
    with fast_imports():
        import torch

        from murp.errors import ConfigError
        from murp.explorer.collection import Collection
        from murp.explorer.server import serve
        from murp.runs import load
        from murp.web.server import address_of, bind

    if options.what == "tree" and options.beside:
        raise ConfigError("--beside is for wordnet and countries: a layout has no second model.")
    # Both demos of WordNet show one run.
    path = Path(options.out or f"runs/demo-{'tree' if options.what == 'tree' else 'wordnet'}")
    paths = [path, *([path.with_name(f"{path.name}-mure")] if options.beside else [])]
    port = options.port
    for folder, model in zip(paths, ("murp", "mure"), strict=False):
        if not os.path.exists(folder):
            port = _make(options, folder, model, port)
    torch.set_num_threads(1)
    bound = bind("127.0.0.1", port)
    collection = Collection([load(folder, device="cpu") for folder in paths])
    view = {"tree": "training", "wordnet": "", "countries": ASIA}[options.what]
    show(f"explorer: {address_of(bound)}{view}  (Ctrl-C ends it)", sys.stdout)
    serve(collection, bound, "127.0.0.1")


def _make(options: argparse.Namespace, path: Path, model: str, port: int) -> int:
    """Train or lay out into a new folder. Returns the port that was used."""
    from murp.graph import KnowledgeGraph

    graph = KnowledgeGraph.load("wordnet-mini")
    if options.what == "tree":
        from murp.explorer.tree_demo import branch_of, grow

        grow(branch_of(graph, ROOT), path)
        return port
    from murp.explorer.watched import Watched
    from murp.training import progress, train

    watched = Watched(progress.usual(), "127.0.0.1", port)
    train(graph, out=path, model=model, dim=40, epochs=options.epochs, progress=watched)
    return watched.port
