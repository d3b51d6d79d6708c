"""``murp info``: what a run folder holds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from murp.cli.imports import uncollected
from murp.cli.text import Commands, figure


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add_parser("info", help="settings, graph, progress and environment of a run")
    command.add_argument("path", metavar="RUN", help="run folder that `murp train` made")
    command.add_argument("--json", action="store_true", help="one JSON object")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read the folder and print what it says."""
    with uncollected():
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
    lines = {
        "run": path,
        "model": f"{config.model} d={config.dim}, {config.dtype}",
        "parts": f"transformation {config.transformation}, bias {config.bias}",
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
    if folder.imported(path):
        lines["imported"] = f"{environment['started']} by murp {environment['murp']}"
    width = max(len(name) for name in lines)
    for name, text in lines.items():
        print(f"{name:<{width}}  {text}")
