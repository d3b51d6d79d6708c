"""The settings of a run as options, with their help and limits: those of every run, and those of the chosen parts.

They depend on the model, the objective, …: so the command line is searched for these first.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from murp import registry
from murp.cli.parser import Parser
from murp.config import Config
from murp.errors import ConfigError, MurpError
from murp.settings import Setting, current

_METAVARS = {int: "N", float: "X", str: "TEXT"}


def add_settings(command: argparse.ArgumentParser, words: Sequence[str], *, several: bool = False) -> None:
    """Every setting of the runs that ``words``, the arguments of the command, describe; several values each, if asked.

    Settings that are on or off are then the same for all.
    """
    title = "settings, each with one value or several" if several else "settings"
    taken = set(Config.settings)
    _add(command.add_argument_group(title), Config.settings, several)
    parts = chosen(words)
    for kind, names in parts.items():
        for name in names:
            part = registry.find(kind, name)
            own = {key: one for key, one in part.settings.items() if key not in taken}
            taken |= set(own)
            if own:
                _add(command.add_argument_group(f"settings of {kind} {name}"), own, several)
    command.set_defaults(known=taken)
    if isinstance(command, Parser):
        command.elsewhere = lambda option: _whose(option, parts)


def given_settings(options: argparse.Namespace) -> dict[str, Any]:
    """Those that the command line names."""
    return {name: value for name, value in vars(options).items() if name in options.known}


def chosen(words: Sequence[str]) -> dict[str, list[str]]:
    """The names of the model, the objective, … that a command line, its file or its recipe chooses; else the usual."""
    from murp.recipes import AUTO, DECIDED, completed

    given: dict[str, list[str]] = {}
    for place, word in enumerate(words):
        option, equals, value = word.partition("=")
        name = option.removeprefix("--")
        if name in (*registry.KINDS, "recipe", "config") and option.startswith("--"):
            rest = [value] if equals else []
            for other in words[place + 1 :] if not equals else ():
                if other.startswith("-"):
                    break
                rest.append(other)
            given[name] = rest or given.get(name, [])
    first = {name: values[0] for name, values in given.items() if values}
    try:
        stored = Config.read(Path(first["config"])) if "config" in first else {}
    except MurpError:
        stored = {}  # said when it is read in earnest
    stored = {name: value for name, value in stored.items() if isinstance(value, str) and _exists(name, value)}
    first.pop("config", None)
    # Which recipe auto will take is not known yet: the options are those of each.
    chosen = {**stored, **first}
    recipes = DECIDED if chosen.get("recipe") == AUTO else [chosen.get("recipe")]
    usual = [completed({**chosen, "recipe": recipe}) for recipe in recipes]
    found = {
        kind: given.get(kind) or list(dict.fromkeys(one.get(kind, getattr(Config, kind)) for one in usual))
        for kind in registry.KINDS
    }
    if not any(registry.find("objective", name).sampled for name in found["objective"]):
        del found["corruption"]  # nothing is drawn
    return found


def _exists(setting: str, value: str) -> bool:
    """Whether there is the part or recipe that a setting of a file names; if not, it is said when the file is read in
    earnest."""
    from murp.recipes import AUTO, RECIPES

    try:
        if setting in registry.KINDS:
            registry.find(setting, value)
    except ConfigError:
        return False
    return setting != "recipe" or value in (*RECIPES, AUTO)


def _whose(option: str, parts: Mapping[str, Sequence[str]]) -> str:
    """What is added to the message that an option is not known."""
    found = registry.whose(option.removeprefix("--").replace("-", "_"), parts, option)
    return f". {found}" if found else ""


def _add(group: argparse._ArgumentGroup, settings: dict[str, Setting], several: bool) -> None:
    for name, one in settings.items():
        help = one.help.replace("%", "%%")
        option: dict[str, Any] = {"default": argparse.SUPPRESS}
        if one.kind is bool:
            option |= {"action": "store_true", "help": help}
        else:
            if one.choices:
                option |= {"type": partial(current, name), "choices": one.choices}
            else:
                option |= {"type": _value(one), "metavar": _METAVARS[one.kind]}
            if name in registry.KINDS:
                help += f": {', '.join(registry.names(name))}"
            option["nargs"] = "+" if several else None
            option["help"] = help if one.default == "" else f"{help}; default: {one.default}"
        group.add_argument("--" + name.replace("_", "-"), **option)


def _value(one: Setting) -> Callable[[str], Any]:
    """An argument type: the value of a setting, refused where :class:`Config` would refuse it."""

    def parse(text: str) -> Any:
        value = one.kind(text)
        try:
            return one.checked(value)
        except ConfigError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix(f"{one.name} ").removesuffix(".")) from None

    parse.__name__ = one.kind.__name__  # what argparse says where the text is no such value: "invalid int value"
    return parse
