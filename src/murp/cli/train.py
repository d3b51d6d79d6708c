"""``murp train``: train a model, or continue a run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murp import display
from murp.cli.settings import add_settings, given_settings
from murp.cli.text import Commands, fast_imports, figure, whole
from murp.commands import command
from murp.config import Config, naming
from murp.errors import ConfigError
from murp.recipes import checked_settings

if TYPE_CHECKING:
    from murp.api.run import Run


def add(commands: Commands) -> None:
    """Every setting of :class:`Config` is an option of the same name."""
    command = commands.add_parser("train", help="train a model on a graph, or continue a run")
    command.add_argument("--out", metavar="RUN", help="run folder to make; default: a free name under runs/")
    command.add_argument("--config", metavar="FILE", help="settings from a TOML file; options override them")
    command.add_argument(
        "--resume", metavar="RUN", help="continue this run; only --epochs and --patience may be changed"
    )
    command.add_argument("--json", action="store_true", help="one JSON object per line: every epoch, then the run")
    command.add_argument("--quiet", action="store_true", help="print only warnings and errors to standard error")
    command.add_argument(
        "--explore",
        action="store_true",
        help="show the training in the browser, then the finished run; stores snapshots",
    )
    command.add_argument(
        "--port", type=whole(least=0), metavar="N", help="port of --explore; default: 8000; 0: any free port"
    )
    command.add_argument(
        "--recipe", metavar="NAME", help="named set of settings (see `murp recipes`); options override them"
    )
    command.set_defaults(run=run)


def settings(command: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """An option for each setting of the run that ``words`` describe."""
    add_settings(command, words)


def run(options: argparse.Namespace) -> None:
    """Train, and print where the result is and what to do next."""
    given = given_settings(options)
    if options.resume is not None:
        _refuse_settings(options, given)

    with fast_imports():
        from murp.api.training import resume, train
        from murp.training import progress

    if options.quiet:
        display.be_quiet()
    shown = progress.chosen(json=options.json, quiet=options.quiet)
    if options.port is not None and not options.explore:
        raise ConfigError("--port is the port of --explore: give both, or neither.")
    if options.explore:
        if "TORCHELASTIC_RUN_ID" in os.environ:
            raise ConfigError("--explore looks at all points, and with torchrun no process has them: leave it out.")
        from murp.explorer.watched import Watched

        watched = Watched(shown, "127.0.0.1", 8000 if options.port is None else options.port)
        shown, options.port = watched, watched.port
    if options.resume is not None:
        result = resume(options.resume, progress=shown, **given)
    else:
        where, file, typed = "command line", None, dict(given)
        if options.config is not None:
            where = f"{options.config} and the command line" if given else options.config
            file = Path(options.config)
            given = {**Config.read(file), **given}
        if options.recipe is not None:
            given["recipe"] = options.recipe
        with naming(where, file, typed):
            settings = {"data": Config.data, **checked_settings(given)}
        result = train(settings.pop("data"), out=options.out or None, reuse=False, progress=shown, **settings)

    state = result.state
    if options.json:
        print(json.dumps({"run": str(result.path), "checkpoint_epoch": state["epoch"], "best_mrr": state["best_mrr"]}))
        return
    what = f"{result.config.model} d={result.config.dim} on {result.graph.name}"
    if shown.begun:
        last = result.metrics()[-1]
        print(f"trained {what}: epoch {last['epoch']}, loss {last['loss']:.4f}")
    else:
        print(f"nothing to do: {what} {_why(result)}")
    if state["best_mrr"] is not None:
        best = f"MRR {figure(state['best_mrr'])} in epoch {state['best_epoch']}"
        print(f"best validation: {best} (valid, protocol {result.config.validated_by})")
    further = command("evaluate" if len(result.graph.test) else "explore", result.path)
    print(f"saved in {result.path}\nnext: {further}")
    if options.explore:
        _explore(result, options.port)


def _explore(result: Run, port: int) -> None:
    """Show the finished run at the same address as the training, until Ctrl-C."""
    import torch

    from murp.explorer.collection import Collection
    from murp.explorer.server import serve
    from murp.runs import load
    from murp.web.server import address_of, bind

    torch.set_num_threads(1)
    bound = bind("127.0.0.1", port)
    collection = Collection([load(result.path, device="cpu")])
    display.show(f"explorer: {address_of(bound)}  (Ctrl-C ends it)", sys.stdout)
    serve(collection, bound, "127.0.0.1")


def _why(result: Run) -> str:
    """How a finished run ended, and how to continue it."""
    from murp.runs import checkpoint, folder
    from murp.runs.settings import checked
    from murp.training.loop import stopped_early
    from murp.training.start import ended_early
    from murp.training.state import State

    last = result.path / folder.LAST
    values = checkpoint.state_of(last)
    state = State.from_dict(checked(values, result.config, last, result.path / folder.CONFIG), last)
    if stopped_early(result.config, state):
        return ended_early(result.path, result.config, state)
    return f"is trained, epoch {state.epoch}. More epochs: --epochs N."


def _refuse_settings(options: argparse.Namespace, given: dict[str, Any]) -> None:
    refused = [f"--{name.replace('_', '-')}" for name in given if name not in ("epochs", "patience")]
    refused += [f"--{name}" for name in ("out", "config", "recipe") if getattr(options, name) is not None]
    if refused:
        raise ConfigError(
            f"--resume takes every setting but --epochs and --patience from the run; leave out {', '.join(refused)}."
        )
