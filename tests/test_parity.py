"""Every command of the command line has a twin in Python, and every option of it a parameter there."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import murp
from murp.cli.main import ANSWERING, WITH_SETTINGS, parser
from murp.paper import report, running

# A command with the function or method that does the same. `murp recipes` prints a table that Python has as a dict.
TWINS: dict[str, list[Any]] = {
    "train": [murp.train, murp.resume],
    "sweep": [murp.sweep],
    "extend": [murp.Run.extend],
    "tune": [murp.tune],
    "evaluate": [murp.evaluate, murp.Run.evaluate],
    "compare": [murp.compare, murp.Run.compare],
    "embed": [murp.embed],
    "reconstruct": [murp.Run.reconstruct],
    "predict": [murp.Run.predict, murp.Run.predict_file],
    "discover": [murp.Run.discover],
    "calibrate": [murp.Run.calibrate],
    "classify": [murp.Run.classify],
    "nearest": [murp.Run.nearest],
    "index": [murp.Run.index],
    "info": [murp.Run.info],
    "plot": [murp.Run.plot],
    "explore": [murp.Run.explore, murp.Run.page, murp.Run.film],
    "serve": [murp.serve],
    "analyze": [murp.analyze, murp.Run.analyze, murp.Run.higher],
    "export": [murp.Run.export],
    "import": [murp.import_run],
    "data list": [murp.datasets],
    "data info": [murp.dataset],
    "data audit": [murp.audit],
    "data convert": [murp.convert],
    "data hierarchy-split": [murp.hierarchy_split],
    "recipes": [],
    "paper list": [running.items],
    "paper run": [running.run],
    "paper config": [running.config],
    "paper report": [report.write],
}
# Commands that come later, each with its reason; once Python has the name it belongs into TWINS.
LATER: dict[str, str] = {}
# Commands that are made of others.
SHOWS = {"demo": "murp.train, murp.embed and Run.explore with settings for a minute's show"}

# Options that Python has in another place.
OPENING = {"path", "checkpoint", "device"}  # of a run: murp.load
READING = {
    "source",
    "data_dir",
    "split_seed",
    "columns",
    "no_header",
}  # of a graph: KnowledgeGraph.load, or the graph itself
PRINTING = {"json", "quiet", "format"}  # results are objects with to_dict and to_dataframe; progress=Silent() is quiet
ELSEWHERE: dict[str, str] = {
    "threads": "murp.threads.use",
    "by_relation": "Report.by_relation",
    "discover out": "NewFacts.to_dataframe, which pandas writes",
    "discover force": "NewFacts.to_dataframe, which pandas writes",
    "analyze run_folder": "Run.analyze",
    "analyze higher": "Run.higher",
    "train resume": "murp.resume",
    "train data": "the graph",
    "sweep data": "the graph",
    "tune data": "the graph",
    "tune report": "Tuning.report, which every search writes",
    "reconstruct run_folder": "murp.load",
    "explore export": "Run.page",
    "explore film": "Run.film",
    "train explore": "progress=murp.explorer.watched.Watched, then Run.explore",
    "train port": "progress=murp.explorer.watched.Watched, then Run.explore",
    "paper report to": "folder",
    "paper run items": "items",
}


def commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command with its parser, `data audit` and its like as one word each."""
    for word in WITH_SETTINGS:  # the settings are added to the command that is given
        top = _subparsers(parser([word]))
        yield word, top[word]
    for name, command in top.items():
        if name in WITH_SETTINGS:
            continue
        verbs = _subparsers(command)
        yield from ((f"{name} {verb}", one) for verb, one in verbs.items()) if verbs else ((name, command),)


def _subparsers(one: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = [a for a in one._actions if isinstance(a, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


COMMANDS = dict(commands())


def test_every_command_has_a_twin() -> None:
    without = set(COMMANDS) - set(TWINS) - set(LATER) - set(SHOWS)
    assert not without, f"no Python twin: {without}. Name it in TWINS, or in LATER why there is none yet"
    assert set(TWINS) <= set(COMMANDS)
    assert not [name for name in LATER if hasattr(murp, name)], "it is there: move it from LATER to TWINS"
    assert murp.recipes.RECIPES


# What is left of these, when standard output is closed, is a file, a folder, a picture or a server.
LEAVING = {
    *("train", "sweep", "extend", "tune", "embed", "calibrate", "index", "plot", "explore", "serve", "demo", "export"),
    *("import", "data convert", "data hierarchy-split", "paper run", "paper report"),
}


def test_every_command_answers_by_printing_or_leaves_something() -> None:
    """Of those that only print, murp.cli.main.ANSWERING knows: without standard output they have failed."""
    printing = {name for name, command in COMMANDS.items() if command.get_default("run") in ANSWERING}
    assert printing & LEAVING == set()
    assert set(COMMANDS) - printing == LEAVING, "put what runs the command into ANSWERING, or its name into LEAVING"


@pytest.mark.parametrize("name", TWINS)
def test_every_option_has_a_parameter(name: str) -> None:
    known: set[str] = set()
    for twin in TWINS[name]:
        known |= set(inspect.signature(twin).parameters)
    options = {a.dest for a in COMMANDS[name]._actions if a.dest != "help"} - OPENING - READING - PRINTING
    missing = {o for o in options - known if f"{name} {o}" not in ELSEWHERE and o not in ELSEWHERE}
    assert not missing, f"murp {name}: {missing} cannot be said in Python"


@pytest.mark.parametrize("twin", [twin for twins in TWINS.values() for twin in twins], ids=lambda t: t.__qualname__)
def test_a_twin_says_what_it_does(twin: Callable[..., Any]) -> None:
    assert twin.__doc__
    parameters = inspect.signature(twin).parameters.values()
    open_ended = [p.name for p in parameters if p.kind is inspect.Parameter.VAR_KEYWORD]
    assert not open_ended or twin in (murp.train, murp.sweep, murp.tune)  # which name every setting too
