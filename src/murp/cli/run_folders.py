"""``murp info``, ``export`` and ``import``: what a run folder holds, written for other programs, and read back."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from murp.cli.text import Commands, add_run, fast_imports, figure
from murp.commands import command
from murp.errors import printable

# Settings of a model that say nothing of what it is made of.
COMMON = ("dim", "initial_scale", "query_dropout", "entity_dropout", "curvature")


def add_info(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("info", help="settings, graph, progress and environment of a run")
    command.add_argument("path", metavar="RUN", help="run folder that `murp train` made")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run_info)


def run_info(options: argparse.Namespace) -> None:
    """Read the folder and print what it says."""
    with fast_imports():
        from murp.graph.vocabulary import counted
        from murp.optimizers.optimizer import TABLES
        from murp.runs import checkpoint, folder
        from murp.runs.settings import checked

    path = Path(options.path)
    config, graph = folder.read_config(path), folder.read_graph(path)
    tables, state = checkpoint.load(path / folder.LAST)
    state = checked(state, config, path / folder.LAST, path / folder.CONFIG)
    counts = graph.counts()
    kept = {name: tables.pop(name) for name in list(tables) if name.startswith(TABLES)}
    parameters = {name: list(values.shape) for name, values in tables.items()}
    environment, trained = folder.read_environment(path), folder.training_environment(path)
    if options.json:
        print(
            json.dumps(
                {
                    "run": str(path),
                    "config": config.to_dict(),
                    "graph": {"name": graph.name, **counts},
                    "state": state,
                    "parameters": parameters,
                    "optimizer": {name.removeprefix(TABLES): list(values.shape) for name, values in kept.items()},
                    "environment": environment,
                }
            )
        )
        return
    shapes = ", ".join(f"{name} {' × '.join(map(str, shape))}" for name, shape in parameters.items())
    number = sum(values.numel() for values in tables.values())
    own = config.settings_of("model")
    lines = {
        "run": path,
        "model": f"{config.model} d={config.dim}, {config.dtype}",
        "parts": ", ".join(f"{name} {value}" for name, value in own.items() if name not in COMMON) or "none",
        "graph": f"{graph.name}: {counted(counts)}",
        "parameters": f"{number:,}: {shapes}",
        "optimizer": f"{config.optimizer}, lr {config.lr:g}"
        + (f", which keeps {sum(values.numel() for values in kept.values()):,} numbers" if kept else ""),
        "progress": f"epoch {state['epoch']} of {config.epochs}, {state['seconds']:,.0f} s",
        "best": "no validation yet"
        if state["best_mrr"] is None
        else f"MRR {figure(state['best_mrr'])} in epoch {state['best_epoch']} (valid, protocol standard)",
        "trained on": "not known: the export does not say"
        if trained is None
        else f"{trained['device']}, torch {trained['torch']}, murp {trained['murp']}, begun {trained['started']}",
    }
    if isinstance(environment.get("recipe"), str):
        lines["recipe auto"] = printable(environment["recipe"])
    if folder.imported(path):
        lines["imported"] = f"{environment['started']} by murp {environment['murp']}"
    width = max(len(name) for name in lines)
    for name, text in lines.items():
        print(f"{name:<{width}}  {text}")


def add_export(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("export", help="vectors with names, geometry, relations and biases, in six formats")
    add_run(command)
    command.add_argument(
        "--to",
        required=True,
        choices=("npz", "parquet", "word2vec", "safetensors", "tensorboard", "hub-folder"),
        help="npz and safetensors are one file, the others a folder; word2vec and tensorboard hold entities alone",
    )
    command.add_argument("--out", metavar="PATH", required=True, help="file or folder to make; it must not exist")
    command.add_argument(
        "--coordinates",
        choices=("poincare", "lorentz", "tangent"),
        help="of a hyperbolic model's points: ball, hyperboloid, or tangent space at the origin; default: poincare",
    )
    command.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> None:
    """Export and say what was written."""
    with fast_imports():
        from murp.exchange import FORMATS, export
        from murp.runs import load

    result = load(options.path, checkpoint=options.checkpoint, device=options.device)
    export(result, options.to, Path(options.out), options.coordinates)
    print(f"wrote {options.out}: {FORMATS[options.to]}")
    if options.to not in ("word2vec", "tensorboard"):
        data = [] if options.to == "hub-folder" else ["--data", "DATA"]
        print(f"back: {command('import', Path(options.out), '--out', 'RUN', *data)}")


def add_import(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("import", help="make a run of what `murp export` wrote")
    command.add_argument("path", metavar="PATH", help="an npz, parquet, safetensors or hub-folder export")
    command.add_argument("--out", metavar="RUN", required=True, help="run folder to make; it must not exist")
    command.add_argument("--data", metavar="DATA", help="the graph it was trained on; a hub-folder brings its own")
    command.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> None:
    """Import and say what can be done with it."""
    with fast_imports():
        from murp.exchange import import_run

    result = import_run(Path(options.path), Path(options.out), options.data)
    what = f"{result.config.model} d={result.config.dim} on {result.graph.name}"
    print(f"imported {what} into {result.path}\nnext: {command('evaluate', result.path)}")
